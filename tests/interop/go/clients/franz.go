package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type franzGo struct {
	options Options
	secure  *tls.Config
}

func (f franzGo) client(more ...kgo.Opt) (*kgo.Client, error) {
	settings := []kgo.Opt{kgo.SeedBrokers(f.options.Bootstrap)}
	if f.secure != nil {
		settings = append(settings, kgo.DialTLSConfig(f.secure))
	}
	if f.options.Mechanism != "" {
		settings = append(settings, kgo.SASL(f.mechanism()))
	}
	return kgo.NewClient(append(settings, more...)...)
}

func (f franzGo) mechanism() sasl.Mechanism {
	auth := scram.Auth{User: f.options.User, Pass: f.options.Password}
	switch f.options.Mechanism {
	case "SCRAM-SHA-256":
		return auth.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return auth.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Auth{Token: f.options.Token}.AsMechanism()
	}
	return plain.Auth{User: f.options.User, Pass: f.options.Password}.AsMechanism()
}

func (f franzGo) produce(ctx context.Context, values []string) error {
	client, err := f.client(kgo.DefaultProduceTopic(f.options.Topic))
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil { // records alone are tried again and again
		return err
	}
	records := make([]*kgo.Record, len(values))
	for number, value := range values {
		records[number] = kgo.StringRecord(value)
	}
	return client.ProduceSync(ctx, records...).FirstErr()
}

func (f franzGo) consume(ctx context.Context, count int) ([]string, error) {
	client, err := f.client(kgo.ConsumeTopics(f.options.Topic), kgo.ConsumerGroup(f.options.Group))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var read []string
	for len(read) < count {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		for _, record := range fetches.Records() {
			read = append(read, string(record.Value))
		}
	}
	return read, client.CommitUncommittedOffsets(ctx)
}

func (f franzGo) admin(ctx context.Context) (map[string]any, error) {
	client, err := f.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	found := map[string]any{}
	for name, step := range map[string]func(context.Context, *kadm.Client) (any, error){
		"rules": franzRules, "quotas": franzQuotas, "users": franzUsers, "tokens": franzTokens,
	} {
		if found[name], err = step(ctx, admin); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return found, nil
}

// franzRules is what was listed, and how many rules were removed.
func franzRules(ctx context.Context, admin *kadm.Client) (any, error) {
	rule := kadm.NewACLs().Topics("orders").ResourcePatternType(kadm.ACLPatternPrefixed).
		Operations(kadm.OpRead).Allow("User:franz").AllowHosts("*")
	created, err := admin.CreateACLs(ctx, rule)
	if err != nil {
		return nil, err
	}
	for _, each := range created {
		if each.Err != nil {
			return nil, each.Err
		}
	}
	described, err := admin.DescribeACLs(ctx, rule)
	if err != nil {
		return nil, err
	}
	var listed []string
	for _, each := range described {
		for _, acl := range each.Described {
			listed = append(listed, fmt.Sprint(
				acl.Principal, " ", acl.Host, " ", acl.Permission, " ", acl.Operation, " ", acl.Type, " ", acl.Pattern, " ", acl.Name,
			))
		}
	}
	deleted, err := admin.DeleteACLs(ctx, rule)
	if err != nil {
		return nil, err
	}
	return map[string]any{"listed": listed, "removed": len(deleted[0].Deleted)}, nil
}

func franzQuotas(ctx context.Context, admin *kadm.Client) (any, error) {
	name := "franz"
	entity := kadm.ClientQuotaEntity{{Type: "user", Name: &name}}
	alter := func(remove bool) error {
		operation := kadm.AlterClientQuotaOp{Key: "consumer_byte_rate", Value: 5e6, Remove: remove}
		altered, err := admin.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{{
			Entity: entity, Ops: []kadm.AlterClientQuotaOp{operation},
		}})
		if err != nil {
			return err
		}
		return altered[0].Err
	}
	if err := alter(false); err != nil {
		return nil, err
	}
	described, err := admin.DescribeClientQuotas(ctx, true, []kadm.DescribeClientQuotaComponent{{Type: "user", MatchName: &name}})
	if err != nil {
		return nil, err
	}
	var listed []string
	for _, each := range described {
		listed = append(listed, fmt.Sprint(each.Entity, " ", each.Values))
	}
	return listed, alter(true)
}

func franzUsers(ctx context.Context, admin *kadm.Client) (any, error) {
	upsert := kadm.UpsertSCRAM{User: "franz", Mechanism: kadm.ScramSha512, Iterations: 5000, Password: "x"}
	altered, err := admin.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{upsert})
	if err == nil {
		err = altered.Error()
	}
	if err != nil {
		return nil, err
	}
	described, err := admin.DescribeUserSCRAMs(ctx, "franz")
	if err != nil {
		return nil, err
	}
	listed := fmt.Sprint(described["franz"].CredInfos)
	altered, err = admin.AlterUserSCRAMs(ctx, []kadm.DeleteSCRAM{{User: "franz", Mechanism: kadm.ScramSha512}}, nil)
	if err == nil {
		err = altered.Error()
	}
	return listed, err
}

// franzTokens is whose token was listed, and how many there are once it has expired.
func franzTokens(ctx context.Context, admin *kadm.Client) (any, error) {
	token, err := admin.CreateDelegationToken(ctx, kadm.CreateDelegationToken{MaxLifetime: time.Hour})
	if err != nil {
		return nil, err
	}
	if _, err := admin.RenewDelegationToken(ctx, token.HMAC, time.Minute); err != nil {
		return nil, err
	}
	listed, err := admin.DescribeDelegationTokens(ctx, token.Owner)
	if err != nil {
		return nil, err
	}
	if _, err := admin.ExpireDelegationToken(ctx, token.HMAC, -time.Millisecond); err != nil {
		return nil, err
	}
	left, err := admin.DescribeDelegationTokens(ctx, token.Owner)
	return []any{listed[0].Owner.Name, len(listed), len(left)}, err
}

func (f franzGo) rules(ctx context.Context) error {
	client, err := f.client()
	if err != nil {
		return err
	}
	defer client.Close()
	every := kadm.NewACLs().AnyResource().ResourcePatternType(kadm.ACLPatternAny).
		Operations(kadm.OpAny).Allow().AllowHosts().Deny().DenyHosts()
	described, err := kadm.NewClient(client).DescribeACLs(ctx, every)
	if err == nil {
		err = described[0].Err
	}
	return err
}
