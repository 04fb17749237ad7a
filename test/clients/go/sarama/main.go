// The client program for sarama. See ../../README.md.
package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"headgate/clients/program"
)

var codecs = map[string]sarama.CompressionCodec{
	"": sarama.CompressionNone, "none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

func base(c *program.Command) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.ClientID = "matrix-sarama"
	if c.ClientID != "" {
		config.ClientID = c.ClientID
	}
	if c.MetadataMs != nil {
		config.Metadata.RefreshFrequency = time.Duration(*c.MetadataMs) * time.Millisecond
	}
	return config
}

func code(err error) int {
	var known sarama.KError
	if errors.As(err, &known) && known > 0 {
		return int(known)
	}
	return 0
}

func produce(c *program.Command) error {
	config := base(c)
	config.Producer.Compression = codecs[c.Codec]
	config.Producer.RequiredAcks = sarama.RequiredAcks(program.Or(c.Acks, -1))
	config.Producer.Return.Successes = true
	config.Producer.MaxMessageBytes = 8 << 20
	config.Producer.Flush.Frequency = 5 * time.Millisecond
	config.Producer.Flush.MaxMessages = 1000
	if c.Partitions != nil {
		config.Producer.Partitioner = sarama.NewManualPartitioner
	}
	if c.Idempotent || c.TransactionalID != "" {
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
	}
	if c.TransactionalID != "" {
		config.Producer.Transaction.ID = c.TransactionalID
	}
	producer, err := sarama.NewAsyncProducer(c.Brokers(), config)
	if err != nil {
		return err
	}
	var answers sync.WaitGroup
	pending := &sync.WaitGroup{}
	answers.Add(2)
	go func() {
		defer answers.Done()
		for message := range producer.Successes() {
			sent := message.Metadata.(sentRecord)
			c.Emit("acknowledged", sent.record.Placed(message.Partition, message.Offset, message.Timestamp).With(sent.named))
			pending.Done()
		}
	}()
	go func() {
		defer answers.Done()
		for failed := range producer.Errors() {
			sent, ours := failed.Msg.Metadata.(sentRecord)
			if !ours {
				c.Emit("error", handlers().ErrorFields(failed.Err))
				continue
			}
			c.Emit("failed", handlers().ErrorFields(failed.Err).With(sent.record.Origin()).With(sent.named))
			pending.Done()
		}
	}()
	send := func(record program.Record, named program.Fields) {
		if c.Sent {
			c.Emit("sent", record.Origin().With(named))
		}
		pending.Add(1)
		producer.Input() <- message(record, named)
	}
	if c.TransactionalID == "" {
		c.Each(func(record program.Record) { send(record, program.Fields{}) })
	} else {
		err = transactions(c, producer, send, pending)
	}
	pending.Wait()
	producer.AsyncClose()
	answers.Wait()
	return err
}

type sentRecord struct {
	record program.Record
	named  program.Fields
}

func message(record program.Record, named program.Fields) *sarama.ProducerMessage {
	out := &sarama.ProducerMessage{
		Topic: record.Topic, Value: sarama.ByteEncoder(record.Value), Timestamp: record.Timestamp,
		Metadata: sentRecord{record, named},
	}
	if record.Key != nil {
		out.Key = sarama.StringEncoder(*record.Key)
	}
	if record.Partition != nil {
		out.Partition = *record.Partition
	}
	for _, header := range record.Headers {
		out.Headers = append(out.Headers, sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value})
	}
	return out
}

func transactions(c *program.Command, producer sarama.AsyncProducer, send func(program.Record, program.Fields), pending *sync.WaitGroup) error {
	var failure error
	each, open, left, number := program.Or(c.PerTransaction, program.Or(c.Count, 1)), 0, program.Or(c.Count, 1), 0
	c.Each(func(record program.Record) {
		if failure != nil {
			return
		}
		if open == 0 {
			number++
			failure = producer.BeginTxn()
		}
		name := fmt.Sprintf("%s-%d", c.TransactionalID, number)
		if failure == nil {
			send(record, program.Fields{"transaction": name})
		}
		open, left = open+1, left-1
		if failure != nil || (open < each && left > 0) {
			return
		}
		open = 0
		pending.Wait()
		outcome := "committed"
		if c.AbortEvery > 0 && number%c.AbortEvery == 0 {
			outcome, failure = "aborted", producer.AbortTxn()
		} else {
			failure = producer.CommitTxn()
		}
		c.Emit("transaction", program.Fields{"producer": c.ProducerName(), "transaction": name, "outcome": outcome})
	})
	return failure
}

func handlers() program.Handlers {
	return program.Handlers{Produce: produce, Consume: consume, Admin: admin, Code: code}
}

func main() { handlers().Serve() }
