package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"headgate/clients/program"
)

// groupHandler is one member's view of its sessions.
type groupHandler struct {
	command *program.Command
	member  *program.Member
	end     context.CancelFunc
	// Partitions are worked on side by side, and commits told in the order of their answers.
	committing sync.Mutex
}

func (h *groupHandler) Setup(session sarama.ConsumerGroupSession) error {
	h.member.Partitions("assigned", session.Claims())
	return nil
}

func (h *groupHandler) Cleanup(session sarama.ConsumerGroupSession) error {
	if h.command.Commit == "end" || h.command.Commit == "batch" {
		h.commit(session)
	}
	h.member.Partitions("revoked", session.Claims())
	return nil
}

func (h *groupHandler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	pending := 0
	var tick <-chan time.Time
	if h.command.PositionsMs > 0 {
		ticker := time.NewTicker(time.Duration(h.command.PositionsMs) * time.Millisecond)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-tick:
			h.member.Position(claim.Topic(), claim.Partition(), -1, claim.HighWaterMarkOffset())
		case <-session.Context().Done():
			return nil
		case one, open := <-claim.Messages():
			if !open {
				return nil
			}
			if !h.deliver(session, one) {
				h.end()
				return nil
			}
			pending++
			if h.command.Commit == "record" || (h.command.Commit == "batch" && (pending >= 500 || len(claim.Messages()) == 0)) {
				pending = 0
				h.commit(session)
			}
			if h.member.Full() {
				h.end()
				return nil
			}
		}
	}
}

func (h *groupHandler) deliver(session sarama.ConsumerGroupSession, one *sarama.ConsumerMessage) bool {
	var headers []program.Header
	for _, header := range one.Headers {
		headers = append(headers, program.Header{Name: string(header.Key), Value: header.Value})
	}
	fields := program.Delivered(one.Topic, one.Partition, one.Offset, one.Key, one.Value, headers, one.Timestamp)
	if !h.member.Deliver(fields) {
		return false
	}
	if h.command.Commit != "none" {
		session.MarkMessage(one, "")
		h.member.Commitable(one.Topic, one.Partition, one.Offset)
	}
	return true
}

// commit sends what is marked. sarama tells no error here; a failed commit comes out of the group's Errors().
func (h *groupHandler) commit(session sarama.ConsumerGroupSession) {
	h.committing.Lock()
	defer h.committing.Unlock()
	offsets := h.member.Take()
	if len(offsets) == 0 {
		return
	}
	session.Commit()
	h.member.Committed(offsets)
}

func consume(c *program.Command) error {
	config := base(c)
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = c.Commit == "auto"
	config.Consumer.Group.Session.Timeout = time.Duration(program.Or(c.SessionMs, 10_000)) * time.Millisecond
	config.Consumer.Group.Heartbeat.Interval = time.Second
	config.Consumer.Group.Rebalance.Timeout = 20 * time.Second
	config.Consumer.MaxWaitTime = 500 * time.Millisecond
	config.Consumer.Return.Errors = true
	if c.InstanceID != "" {
		config.Consumer.Group.InstanceId = c.InstanceID
	}
	if c.Isolation == "read_committed" {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	switch c.Assignor {
	case "range":
		config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	case "cooperative":
		config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategySticky()}
	}
	group, err := sarama.NewConsumerGroup(c.Brokers(), c.Group, config)
	if err != nil {
		return err
	}
	go func() {
		for failed := range group.Errors() {
			c.Emit("error", handlers().ErrorFields(failed))
		}
	}()
	ctx, end := context.WithCancel(context.Background())
	defer end()
	go func() {
		select {
		case <-c.Stopped():
			end()
		case <-ctx.Done():
		}
	}()
	handler := &groupHandler{command: c, member: program.NewMember(c), end: end}
	for ctx.Err() == nil {
		if err = group.Consume(ctx, c.Topics, handler); err != nil {
			break
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, sarama.ErrClosedConsumerGroup) {
		err = nil
	}
	if closed := group.Close(); err == nil {
		err = closed
	}
	return err
}
