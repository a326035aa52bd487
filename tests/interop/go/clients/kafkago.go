package main

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

type kafkaGo struct {
	options Options
	secure  *tls.Config
}

func (k kafkaGo) mechanism() (sasl.Mechanism, error) {
	switch k.options.Mechanism {
	case "":
		return nil, nil
	case "SCRAM-SHA-256":
		return scram.Mechanism(scram.SHA256, k.options.User, k.options.Password)
	case "SCRAM-SHA-512":
		return scram.Mechanism(scram.SHA512, k.options.User, k.options.Password)
	}
	return plain.Mechanism{Username: k.options.User, Password: k.options.Password}, nil
}

func (k kafkaGo) produce(ctx context.Context, values []string) error {
	mechanism, err := k.mechanism()
	if err != nil {
		return err
	}
	transport := &kafka.Transport{TLS: k.secure, SASL: mechanism}
	defer transport.CloseIdleConnections()
	writer := &kafka.Writer{
		Addr: kafka.TCP(k.options.Bootstrap), Topic: k.options.Topic, Transport: transport,
		BatchSize: len(values), RequiredAcks: kafka.RequireAll,
	}
	defer writer.Close()
	messages := make([]kafka.Message, len(values))
	for number, value := range values {
		messages[number] = kafka.Message{Value: []byte(value)}
	}
	return writer.WriteMessages(ctx, messages...)
}

func (k kafkaGo) consume(ctx context.Context, count int) ([]string, error) {
	mechanism, err := k.mechanism()
	if err != nil {
		return nil, err
	}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{k.options.Bootstrap}, Topic: k.options.Topic, GroupID: k.options.Group, StartOffset: kafka.FirstOffset,
		MaxWait: 50 * time.Millisecond, // closing waits for it
		Dialer:  &kafka.Dialer{TLS: k.secure, SASLMechanism: mechanism, DualStack: true},
	})
	defer reader.Close()
	var read []string
	for len(read) < count {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			return nil, err
		}
		read = append(read, string(message.Value))
	}
	return read, nil
}
