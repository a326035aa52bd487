package main

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const accepted, released, rejected = "accepted", "released", "rejected"

var statuses = map[string]kgo.AckStatus{accepted: kgo.AckAccept, released: kgo.AckRelease, rejected: kgo.AckReject}

// choice is what becomes of a record with its delivery of that count, as in the other programs.
func choice(offset int64, count int32) string {
	switch {
	case offset%13 == 6:
		return released // until its deliveries are used up
	case offset%11 == 5:
		return rejected
	case offset%7 == 3 && count == 1:
		return released
	}
	return accepted
}

// refusals are the errors of acknowledgements since they were last taken, by partition.
type refusals struct {
	mu     sync.Mutex
	errors map[int32]error
}

func (r *refusals) note(_ *kgo.Client, results kgo.ShareAckResults) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, result := range results {
		if result.Err != nil {
			r.errors[result.Partition] = result.Err
		}
	}
}

func (r *refusals) take() map[int32]error {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.errors
	r.errors = map[int32]error{}
	return found
}

// share is a member of a share group: it tells what it receives, and what became of it once the broker has answered.
func share(ctx context.Context, options Options) error {
	refused := &refusals{errors: map[int32]error{}}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(options.Bootstrap),
		kgo.ShareGroup(options.Group),
		kgo.ConsumeTopics(options.Topic),
		kgo.ShareMaxRecords(20),
		kgo.ShareAckCallback(refused.note),
		kgo.FetchMaxWait(poll),
	)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		shareStep(ctx, client, refused)
	}
	client.Close()
	return nil
}

func shareStep(ctx context.Context, client *kgo.Client, refused *refusals) {
	limited, cancel := context.WithTimeout(ctx, poll)
	defer cancel()
	records := client.PollRecords(limited, 20).Records()
	for _, record := range records {
		place := map[string]any{"partition": record.Partition, "offset": record.Offset, "count": record.DeliveryCount()}
		say("received", place)
		record.Ack(statuses[choice(record.Offset, record.DeliveryCount())])
	}
	patient, done := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer done()
	failure := client.FlushAcks(patient)
	errors := refused.take()
	for _, record := range records {
		err := failure
		if err == nil {
			err = errors[record.Partition]
		}
		place := map[string]any{"partition": record.Partition, "offset": record.Offset}
		if err != nil {
			place["error"] = err.Error()
			say("refused", place)
			continue
		}
		place["how"] = choice(record.Offset, record.DeliveryCount())
		say("settled", place)
	}
}
