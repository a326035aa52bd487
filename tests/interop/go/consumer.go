package main

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const poll = 50 * time.Millisecond

// consumer is a member of a consumer group that commits all it has read: after every poll, and before it gives
// partitions up.
type consumer struct {
	topic   string
	mu      sync.Mutex
	owned   map[int32]bool
	pending map[int32]kgo.EpochOffset
}

func consume(ctx context.Context, options Options) error {
	c := &consumer{topic: options.Topic, owned: map[int32]bool{}, pending: map[int32]kgo.EpochOffset{}}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(options.Bootstrap),
		kgo.ConsumerGroup(options.Group),
		kgo.ServerSideBalancer(),
		kgo.Balancers(kgo.StickyBalancer()),
		kgo.ConsumeTopics(options.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.FetchMaxWait(poll),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, assigned map[string][]int32) {
			c.change(assigned[c.topic], true)
		}),
		kgo.OnPartitionsRevoked(func(ctx context.Context, client *kgo.Client, revoked map[string][]int32) {
			c.commit(ctx, client)
			c.change(revoked[c.topic], false)
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
			c.change(lost[c.topic], false)
		}),
	)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		c.step(ctx, client)
	}
	client.Close()
	return nil
}

func (c *consumer) step(ctx context.Context, client *kgo.Client) {
	defer client.AllowRebalance()
	limited, cancel := context.WithTimeout(ctx, poll)
	defer cancel()
	fetches := client.PollFetches(limited)
	c.mu.Lock()
	fetches.EachRecord(func(record *kgo.Record) {
		say("read", map[string]any{"partition": record.Partition, "offset": record.Offset})
		c.pending[record.Partition] = kgo.EpochOffset{Epoch: record.LeaderEpoch, Offset: record.Offset + 1}
	})
	c.mu.Unlock()
	c.commit(context.WithoutCancel(ctx), client)
}

func (c *consumer) commit(ctx context.Context, client *kgo.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) == 0 {
		return
	}
	offsets := map[int32]int64{}
	for partition, offset := range c.pending {
		offsets[partition] = offset.Offset
	}
	var failure error
	client.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{c.topic: c.pending}, committed(&failure))
	if failure != nil {
		say("commit failed", map[string]any{"error": failure.Error()})
		return // again later, if the partitions are still ours
	}
	say("committed", map[string]any{"offsets": offsets})
	clear(c.pending)
}

func (c *consumer) change(partitions []int32, owns bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, partition := range partitions {
		if owns {
			c.owned[partition] = true
		} else {
			delete(c.owned, partition)
			delete(c.pending, partition)
		}
	}
	now := []int32{}
	for partition := range c.owned {
		now = append(now, partition)
	}
	sort.Slice(now, func(i, j int) bool { return now[i] < now[j] })
	say("owns", map[string]any{"partitions": now})
}
