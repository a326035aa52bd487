// What programs with franz-go, sarama and kafka-go do: they log in, write records and read them as a group, or change what
// an administrator changes. What they found is a line of JSON on standard output; an error ends them.
//
//	clients franz-go|sarama|kafka-go records|admin|rules OPTIONS
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// Options are what the parent wants, as JSON. Token is for OAUTHBEARER. Certificate is a PEM file with its key; without a CA there is no TLS.
type Options struct {
	Bootstrap, Topic, Group   string
	Mechanism, User, Password string
	Token                     string
	CA, Certificate           string
}

// library is what a program does with one of them.
type library interface {
	produce(ctx context.Context, values []string) error
	// consume reads so many records as a member of the group.
	consume(ctx context.Context, count int) ([]string, error)
}

// administrator is a library that can change what an administrator changes.
type administrator interface {
	// admin adds, lists and removes what an administrator does.
	admin(ctx context.Context) (map[string]any, error)
	// rules asks for all access rules.
	rules(ctx context.Context) error
}

const count = 100

func main() {
	found, err := run(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(found)
}

func run(name, task, text string) (map[string]any, error) {
	var options Options
	if err := json.Unmarshal([]byte(text), &options); err != nil {
		return nil, err
	}
	secure, err := options.tls()
	if err != nil {
		return nil, err
	}
	var chosen library
	switch name {
	case "franz-go":
		chosen = franzGo{options, secure}
	case "sarama":
		chosen = saramas{options, secure}
	case "kafka-go":
		chosen = kafkaGo{options, secure}
	default:
		return nil, fmt.Errorf("no such library: %s", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	switch task {
	case "records":
		return records(ctx, chosen)
	case "admin":
		return chosen.(administrator).admin(ctx)
	case "rules":
		return map[string]any{"error": fmt.Sprint(chosen.(administrator).rules(ctx))}, nil
	}
	return nil, fmt.Errorf("no such task: %s", task)
}

// records writes some megabyte, and reads it: what comes back without its padding.
func records(ctx context.Context, client library) (map[string]any, error) {
	padding := strings.Repeat(".", 10_000)
	values := make([]string, count)
	for number := range values {
		values[number] = fmt.Sprint(number, padding)
	}
	if err := client.produce(ctx, values); err != nil {
		return nil, fmt.Errorf("produce: %w", err)
	}
	read, err := client.consume(ctx, count)
	if err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	for number, value := range read {
		read[number] = strings.TrimSuffix(value, padding)
	}
	return map[string]any{"read": read}, nil
}

func (o Options) tls() (*tls.Config, error) {
	if o.CA == "" {
		return nil, nil
	}
	authority, err := os.ReadFile(o.CA)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(authority)
	if o.Certificate != "" {
		certificate, err := tls.LoadX509KeyPair(o.Certificate, o.Certificate)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return config, nil
}
