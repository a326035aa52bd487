package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

type saramas struct {
	options Options
	secure  *tls.Config
}

// conversation is what sarama wants of a library for SCRAM.
type conversation struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

func (c *conversation) Begin(user, password, authorization string) error {
	client, err := c.hash.NewClient(user, password, authorization)
	if err == nil {
		c.ClientConversation = client.NewConversation()
	}
	return err
}

// token is what sarama wants of who makes tokens.
type token string

func (t token) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: string(t)}, nil
}

func (s saramas) config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.MaxWaitTime = 50 * time.Millisecond // closing waits for it
	config.Net.TLS.Enable = s.secure != nil
	config.Net.TLS.Config = s.secure
	if s.options.Mechanism == "" {
		return config
	}
	config.Net.SASL.Enable = true
	config.Net.SASL.Mechanism = sarama.SASLMechanism(s.options.Mechanism)
	config.Net.SASL.TokenProvider = token(s.options.Token)
	config.Net.SASL.User, config.Net.SASL.Password = s.options.User, s.options.Password
	hashes := map[string]scram.HashGeneratorFcn{"SCRAM-SHA-256": scram.SHA256, "SCRAM-SHA-512": scram.SHA512}
	config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
		return &conversation{hash: hashes[s.options.Mechanism]}
	}
	return config
}

func (s saramas) produce(_ context.Context, values []string) error {
	producer, err := sarama.NewSyncProducer([]string{s.options.Bootstrap}, s.config())
	if err != nil {
		return err
	}
	defer producer.Close()
	messages := make([]*sarama.ProducerMessage, len(values))
	for number, value := range values {
		messages[number] = &sarama.ProducerMessage{Topic: s.options.Topic, Value: sarama.StringEncoder(value)}
	}
	return producer.SendMessages(messages)
}

// reader takes what its partitions bring, until it has enough.
type reader struct {
	count int
	read  []string
	done  context.CancelFunc
}

func (*reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r *reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		r.read = append(r.read, string(message.Value))
		session.MarkMessage(message, "")
		if len(r.read) == r.count {
			session.Commit()
			r.done()
		}
	}
	return nil
}

func (s saramas) consume(ctx context.Context, count int) ([]string, error) {
	group, err := sarama.NewConsumerGroup([]string{s.options.Bootstrap}, s.options.Group, s.config())
	if err != nil {
		return nil, err
	}
	defer group.Close()
	limited, done := context.WithCancel(ctx)
	member := &reader{count: count, done: done}
	for limited.Err() == nil {
		if err := group.Consume(limited, []string{s.options.Topic}, member); err != nil {
			return nil, err
		}
	}
	return member.read, ctx.Err()
}

func (s saramas) admin(context.Context) (map[string]any, error) {
	admin, err := sarama.NewClusterAdmin([]string{s.options.Bootstrap}, s.config())
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	found := map[string]any{}
	for name, step := range map[string]func(sarama.ClusterAdmin) (any, error){
		"rules": saramaRules, "quotas": saramaQuotas, "users": saramaUsers,
	} {
		if found[name], err = step(admin); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return found, nil
}

// saramaRules is what was listed, and how many rules were removed.
func saramaRules(admin sarama.ClusterAdmin) (any, error) {
	resource := sarama.Resource{
		ResourceType: sarama.AclResourceGroup, ResourceName: "g", ResourcePatternType: sarama.AclPatternLiteral,
	}
	rule := sarama.Acl{
		Principal: "User:sarama", Host: "*", Operation: sarama.AclOperationDescribe, PermissionType: sarama.AclPermissionDeny,
	}
	if err := admin.CreateACL(resource, rule); err != nil {
		return nil, err
	}
	filter := sarama.AclFilter{
		ResourceType: sarama.AclResourceAny, ResourcePatternTypeFilter: sarama.AclPatternAny, Principal: &rule.Principal,
		Operation: sarama.AclOperationAny, PermissionType: sarama.AclPermissionAny,
	}
	described, err := admin.ListAcls(filter)
	if err != nil {
		return nil, err
	}
	var listed []string
	for _, each := range described {
		for _, acl := range each.Acls {
			listed = append(listed, fmt.Sprint(
				acl.Principal, " ", acl.Host, " ", acl.PermissionType.String(), " ", acl.Operation.String(), " ",
				each.ResourceType.String(), " ", each.ResourcePatternType.String(), " ", each.ResourceName,
			))
		}
	}
	deleted, err := admin.DeleteACL(filter, false)
	return map[string]any{"listed": listed, "removed": len(deleted)}, err
}

func saramaQuotas(admin sarama.ClusterAdmin) (any, error) {
	entity := []sarama.QuotaEntityComponent{
		{EntityType: sarama.QuotaEntityClientID, MatchType: sarama.QuotaMatchExact, Name: "sarama"},
	}
	operation := sarama.ClientQuotasOp{Key: "producer_byte_rate", Value: 6e6}
	if err := admin.AlterClientQuotas(entity, operation, false); err != nil {
		return nil, err
	}
	described, err := admin.DescribeClientQuotas([]sarama.QuotaFilterComponent{
		{EntityType: sarama.QuotaEntityClientID, MatchType: sarama.QuotaMatchExact, Match: "sarama"},
	}, true)
	if err != nil {
		return nil, err
	}
	var listed []string
	for _, each := range described {
		listed = append(listed, fmt.Sprint(each.Entity[0].EntityType, " ", each.Entity[0].Name, " ", each.Values))
	}
	operation.Remove = true
	return listed, admin.AlterClientQuotas(entity, operation, false)
}

func saramaUsers(admin sarama.ClusterAdmin) (any, error) {
	changed := func(results []*sarama.AlterUserScramCredentialsResult, err error) error {
		if err == nil && !errors.Is(results[0].ErrorCode, sarama.ErrNoError) {
			err = results[0].ErrorCode
		}
		return err
	}
	err := changed(admin.UpsertUserScramCredentials([]sarama.AlterUserScramCredentialsUpsert{{
		Name: "sarama", Mechanism: sarama.SCRAM_MECHANISM_SHA_256, Iterations: 6000, Salt: []byte("salt"), Password: []byte("x"),
	}}))
	if err != nil {
		return nil, err
	}
	described, err := admin.DescribeUserScramCredentials([]string{"sarama"})
	if err != nil {
		return nil, err
	}
	info := described[0].CredentialInfos[0]
	return fmt.Sprint(info.Mechanism.String(), " ", info.Iterations), changed(
		admin.DeleteUserScramCredentials([]sarama.AlterUserScramCredentialsDelete{
			{Name: "sarama", Mechanism: sarama.SCRAM_MECHANISM_SHA_256},
		}),
	)
}

func (s saramas) rules(context.Context) error {
	admin, err := sarama.NewClusterAdmin([]string{s.options.Bootstrap}, s.config())
	if err != nil {
		return err
	}
	defer admin.Close()
	_, err = admin.ListAcls(sarama.AclFilter{
		ResourceType: sarama.AclResourceAny, ResourcePatternTypeFilter: sarama.AclPatternAny,
		Operation: sarama.AclOperationAny, PermissionType: sarama.AclPermissionAny,
	})
	return err
}
