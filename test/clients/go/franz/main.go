// The client program for franz-go. See ../../README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"headgate/clients/program"
)

var codecs = map[string]kgo.CompressionCodec{
	"": kgo.NoCompression(), "none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func base(c *program.Command) []kgo.Opt {
	id := c.ClientID
	if id == "" {
		id = "matrix-franz-go"
	}
	opts := []kgo.Opt{kgo.SeedBrokers(c.Brokers()...), kgo.ClientID(id), kgo.MetadataMinAge(250 * time.Millisecond)}
	if c.MetadataMs != nil {
		opts = append(opts, kgo.MetadataMaxAge(time.Duration(*c.MetadataMs)*time.Millisecond))
	}
	return opts
}

func code(err error) int {
	var known *kerr.Error
	if errors.As(err, &known) {
		return int(known.Code)
	}
	return 0
}

func produce(c *program.Command) error {
	ctx := context.Background()
	opts := append(base(c),
		kgo.ProducerBatchCompression(codecs[c.Codec]), kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(50_000),
		kgo.ProducerBatchMaxBytes(1_000_012))
	if c.Partitions != nil {
		opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	if !c.Idempotent && c.TransactionalID == "" {
		acks := map[int]kgo.Acks{-1: kgo.AllISRAcks(), 0: kgo.NoAck(), 1: kgo.LeaderAck()}[program.Or(c.Acks, -1)]
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(acks))
	}
	if c.TransactionalID != "" {
		opts = append(opts, kgo.TransactionalID(c.TransactionalID))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer client.Close()
	if c.TransactionalID == "" {
		c.Each(func(record program.Record) { send(c, client, record, program.Fields{}) })
		return client.Flush(ctx)
	}
	return transactions(ctx, c, client)
}

func send(c *program.Command, client *kgo.Client, record program.Record, named program.Fields) {
	if c.Sent {
		c.Emit("sent", record.Origin().With(named))
	}
	out := &kgo.Record{Topic: record.Topic, Value: record.Value, Timestamp: record.Timestamp}
	if record.Key != nil {
		out.Key = []byte(*record.Key)
	}
	if record.Partition != nil {
		out.Partition = *record.Partition
	}
	for _, header := range record.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
	}
	client.Produce(context.Background(), out, func(placed *kgo.Record, err error) {
		if err != nil {
			c.Emit("failed", handlers().ErrorFields(err).With(record.Origin()).With(named))
			return
		}
		c.Emit("acknowledged", record.Placed(placed.Partition, placed.Offset, placed.Timestamp).With(named))
	})
}

func transactions(ctx context.Context, c *program.Command, client *kgo.Client) error {
	var failure error
	each, open, left, number := program.Or(c.PerTransaction, program.Or(c.Count, 1)), 0, program.Or(c.Count, 1), 0
	c.Each(func(record program.Record) {
		if failure != nil {
			return
		}
		if open == 0 {
			number++
			failure = client.BeginTransaction()
		}
		name := fmt.Sprintf("%s-%d", c.TransactionalID, number)
		send(c, client, record, program.Fields{"transaction": name})
		open, left = open+1, left-1
		if failure != nil || (open < each && left > 0) {
			return
		}
		open = 0
		if failure = client.Flush(ctx); failure != nil {
			return
		}
		outcome, end := "committed", kgo.TryCommit
		if c.AbortEvery > 0 && number%c.AbortEvery == 0 {
			outcome, end = "aborted", kgo.TryAbort
		}
		failure = client.EndTransaction(ctx, end)
		c.Emit("transaction", program.Fields{"producer": c.ProducerName(), "transaction": name, "outcome": outcome})
	})
	return failure
}

func consume(c *program.Command) error {
	member := program.NewMember(c)
	watch := func(event string) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			member.Partitions(event, partitions)
		}
	}
	session := time.Duration(program.Or(c.SessionMs, 10_000)) * time.Millisecond
	opts := append(base(c),
		kgo.ConsumerGroup(c.Group), kgo.ConsumeTopics(c.Topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(session), kgo.HeartbeatInterval(time.Second), kgo.FetchMaxWait(500*time.Millisecond),
		kgo.OnPartitionsAssigned(watch("assigned")), kgo.OnPartitionsRevoked(watch("revoked")), kgo.OnPartitionsLost(watch("lost")),
		kgo.BlockRebalanceOnPoll())
	switch c.Assignor {
	case "range":
		opts = append(opts, kgo.Balancers(kgo.RangeBalancer()))
	case "cooperative":
		opts = append(opts, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	}
	if c.Isolation == "read_committed" {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if c.Commit == "auto" {
		opts = append(opts, kgo.AutoCommitInterval(time.Second))
	} else {
		opts = append(opts, kgo.DisableAutoCommit())
	}
	if c.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(c.InstanceID))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	err = poll(c, client, member)
	if err == nil && (c.Commit == "end" || c.Commit == "batch") {
		err = commitLast(client, member)
	}
	client.AllowRebalance()
	client.Close()
	return err
}

func poll(c *program.Command, client *kgo.Client, member *program.Member) error {
	lastError, told, ends := "", time.Now(), map[program.Place]int64{}
	for !c.IsStopped() && !member.Full() {
		client.AllowRebalance()
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		fetches := client.PollRecords(ctx, 500)
		cancel()
		for _, failed := range fetches.Errors() {
			if !errors.Is(failed.Err, context.DeadlineExceeded) && failed.Err.Error() != lastError {
				lastError = failed.Err.Error()
				c.Emit("error", handlers().ErrorFields(failed.Err))
			}
		}
		for _, one := range fetches.Records() {
			var headers []program.Header
			for _, header := range one.Headers {
				headers = append(headers, program.Header{Name: header.Key, Value: header.Value})
			}
			if !member.Deliver(program.Delivered(one.Topic, one.Partition, one.Offset, one.Key, one.Value, headers, one.Timestamp)) {
				break
			}
			member.Commitable(one.Topic, one.Partition, one.Offset)
			if c.Commit == "record" {
				if err := commitAll(client, member); err != nil {
					return err
				}
			}
		}
		if c.Commit == "batch" {
			if err := commitAll(client, member); err != nil {
				return err
			}
		}
		fetches.EachPartition(func(one kgo.FetchTopicPartition) {
			ends[program.Place{Topic: one.Topic, Partition: one.Partition}] = one.HighWatermark
		})
		if every := time.Duration(c.PositionsMs) * time.Millisecond; every > 0 && time.Since(told) >= every {
			told = time.Now()
			tellPositions(client, member, ends)
		}
	}
	return nil
}

// tellPositions tells the offsets behind what was polled; ends are the high watermarks that came with it.
func tellPositions(client *kgo.Client, member *program.Member, ends map[program.Place]int64) {
	for topic, partitions := range client.UncommittedOffsets() {
		for partition, at := range partitions {
			end, known := ends[program.Place{Topic: topic, Partition: partition}]
			if !known {
				end = -1
			}
			member.Position(topic, partition, at.Offset, end)
		}
	}
}

func commitAll(client *kgo.Client, member *program.Member) error {
	offsets := member.Take()
	if len(offsets) == 0 {
		return nil
	}
	var records []*kgo.Record
	for place, next := range offsets {
		records = append(records, &kgo.Record{Topic: place.Topic, Partition: place.Partition, Offset: next - 1, LeaderEpoch: -1})
	}
	if err := client.CommitRecords(context.Background(), records...); err != nil {
		if !passes(err) {
			return err
		}
		return member.NotCommitted(offsets, err, handlers().ErrorFields(err))
	}
	member.Committed(offsets)
	return nil
}

// commitLast commits what is done before the member leaves: nothing comes after it that could.
func commitLast(client *kgo.Client, member *program.Member) error {
	for member.HasPositions() {
		if err := commitAll(client, member); err != nil {
			return err
		}
		client.AllowRebalance()
		time.Sleep(200 * time.Millisecond)
	}
	return nil
}

// passes tells whether a commit that failed so may go well later: the connection broke, the coordinator moves, or the group
// rebalances.
func passes(err error) bool {
	var known *kerr.Error
	if !errors.As(err, &known) {
		return !errors.Is(err, kgo.ErrClientClosed)
	}
	return known.Retriable || known == kerr.RebalanceInProgress || known == kerr.IllegalGeneration || known == kerr.UnknownMemberID
}

func admin(c *program.Command) error {
	client, err := kgo.NewClient(append(base(c), kgo.RetryTimeout(15*time.Second))...)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	result, err := call(ctx, c, kadm.NewClient(client))
	if err == nil {
		c.Emit("result", program.Fields{"op": c.Op, "result": result})
	}
	return err
}

func call(ctx context.Context, c *program.Command, client *kadm.Client) (any, error) {
	switch c.Op {
	case "createTopic":
		answer, err := client.CreateTopic(ctx, int32(*c.Partitions), 1, nil, c.Topic)
		return nil, first(err, answer.Err)
	case "deleteTopic":
		answer, err := client.DeleteTopic(ctx, c.Topic)
		return nil, first(err, answer.Err)
	case "addPartitions":
		answer, err := client.UpdatePartitions(ctx, *c.Partitions, c.Topic)
		return nil, first(err, answer[c.Topic].Err)
	case "describeTopic":
		partitions, err := partitionsOf(ctx, c, client)
		return []any{program.Fields{"name": c.Topic, "partitions": partitions}}, err
	case "listTopics":
		topics, err := client.ListTopics(ctx)
		return topics.Names(), err
	case "describeConfigs":
		answer, err := client.DescribeTopicConfigs(ctx, c.Topic)
		if err != nil {
			return nil, err
		}
		pairs := [][2]any{}
		for _, config := range answer[0].Configs {
			pairs = append(pairs, [2]any{config.Key, config.Value})
		}
		sort.Slice(pairs, func(a, b int) bool { return pairs[a][0].(string) < pairs[b][0].(string) })
		return pairs, answer[0].Err
	case "alterConfigs":
		var changes []kadm.AlterConfig
		for name, value := range c.Configs {
			changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
		}
		answer, err := client.AlterTopicConfigs(ctx, changes, c.Topic)
		if err == nil {
			err = answer[0].Err
		}
		return nil, err
	case "describeCluster":
		answer, err := client.BrokerMetadata(ctx)
		brokers := []program.Fields{}
		for _, broker := range answer.Brokers {
			brokers = append(brokers, program.Fields{"nodeId": broker.NodeID, "host": broker.Host, "port": broker.Port})
		}
		return program.Fields{"clusterId": answer.Cluster, "brokers": brokers}, err
	case "listGroups":
		groups, err := client.ListGroups(ctx)
		return groups.Groups(), err
	case "describeGroup":
		groups, err := client.DescribeGroups(ctx, c.Group)
		group := groups[c.Group]
		return []any{[]any{group.Group, group.State, len(group.Members)}}, first(err, group.Err)
	case "deleteGroup":
		answer, err := client.DeleteGroup(ctx, c.Group)
		return nil, first(err, answer.Err)
	case "groupOffsets":
		answer, err := client.FetchOffsets(ctx, c.Group)
		pairs := [][2]int64{}
		for partition, offset := range answer[c.Topic] {
			pairs = append(pairs, [2]int64{int64(partition), offset.At})
		}
		sort.Slice(pairs, func(a, b int) bool { return pairs[a][0] < pairs[b][0] })
		return pairs, err
	case "endOffsets":
		answer, err := client.ListEndOffsets(ctx, c.Topic)
		pairs := [][2]int64{}
		for partition, offset := range answer[c.Topic] {
			pairs = append(pairs, [2]int64{int64(partition), offset.Offset})
		}
		sort.Slice(pairs, func(a, b int) bool { return pairs[a][0] < pairs[b][0] })
		return pairs, err
	}
	return nil, fmt.Errorf("unknown op %s", c.Op)
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func partitionsOf(ctx context.Context, c *program.Command, client *kadm.Client) ([]int32, error) {
	topics, err := client.ListTopics(ctx, c.Topic)
	if err != nil {
		return nil, err
	}
	return topics[c.Topic].Partitions.Numbers(), topics[c.Topic].Err
}

func handlers() program.Handlers {
	return program.Handlers{Produce: produce, Consume: consume, Admin: admin, Code: code}
}

func main() { handlers().Serve() }
