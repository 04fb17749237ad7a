// Package program is what the Go client programs share: commands in, events out. See ../../README.md.
package program

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Command is one line of input.
type Command struct {
	ID              string            `json:"id"`
	Cmd             string            `json:"cmd"`
	Bootstrap       string            `json:"bootstrap"`
	ClientID        string            `json:"clientId"`
	Topic           string            `json:"topic"`
	Topics          []string          `json:"topics"`
	Count           *int              `json:"count"`
	Size            *int              `json:"size"`
	Keys            *int              `json:"keys"`
	Partitions      *int              `json:"partitions"`
	Headers         int               `json:"headers"`
	Codec           string            `json:"codec"`
	Acks            *int              `json:"acks"`
	Idempotent      bool              `json:"idempotent"`
	Timestamp       *int64            `json:"timestamp"`
	Producer        string            `json:"producer"`
	Start           int               `json:"start"`
	Rate            float64           `json:"rate"`
	Sent            bool              `json:"sent"`
	TransactionalID string            `json:"transactionalId"`
	PerTransaction  *int              `json:"perTransaction"`
	AbortEvery      int               `json:"abortEvery"`
	Group           string            `json:"group"`
	Member          string            `json:"member"`
	Isolation       string            `json:"isolation"`
	Commit          string            `json:"commit"`
	WorkMs          int               `json:"workMs"`
	PositionsMs     int               `json:"positionsMs"`
	Assignor        string            `json:"assignor"`
	Protocol        string            `json:"protocol"`
	SessionMs       *int              `json:"sessionMs"`
	MetadataMs      *int              `json:"metadataMs"`
	InstanceID      string            `json:"instanceId"`
	Op              string            `json:"op"`
	Configs         map[string]string `json:"configs"`
	Target          string            `json:"target"`

	stop     chan struct{}
	stopOnce sync.Once
	counted  atomic.Int64
}

// Or is the value of an optional field.
func Or[T any](field *T, otherwise T) T {
	if field == nil {
		return otherwise
	}
	return *field
}

// Stopped is closed when the command is to end gracefully.
func (c *Command) Stopped() <-chan struct{} { return c.stop }

// IsStopped tells whether the command is to end.
func (c *Command) IsStopped() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

// Brokers are the bootstrap addresses.
func (c *Command) Brokers() []string { return strings.Split(c.Bootstrap, ",") }

// Name is the name of the group member.
func (c *Command) Name() string {
	if c.Member == "" {
		return c.ID
	}
	return c.Member
}

// ProducerName is the name in the values.
func (c *Command) ProducerName() string {
	if c.Producer == "" {
		return "p"
	}
	return c.Producer
}

// Fields are the fields of an event.
type Fields map[string]any

// With is a copy with more fields.
func (f Fields) With(more Fields) Fields {
	all := Fields{}
	for name, value := range f {
		all[name] = value
	}
	for name, value := range more {
		all[name] = value
	}
	return all
}

var (
	output   = bufio.NewWriterSize(os.Stdout, 1<<16)
	outputMu sync.Mutex
)

// Emit writes an event.
func (c *Command) Emit(event string, fields Fields) {
	if event == "acknowledged" || event == "delivered" {
		c.counted.Add(1)
	}
	line := fields.With(Fields{"id": c.ID, "event": event, "at": time.Now().UnixMilli()})
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	outputMu.Lock()
	defer outputMu.Unlock()
	output.Write(text)
	output.WriteByte('\n')
}

// flush sends off what was emitted: called before what others can see, as the program may be killed behind it.
func flush() {
	outputMu.Lock()
	defer outputMu.Unlock()
	output.Flush()
}

func flushOften() {
	for range time.Tick(20 * time.Millisecond) {
		flush()
	}
}

// Handlers carry out commands; Code finds Kafka's numeric code in an error (0: none).
type Handlers struct {
	Produce, Consume, Admin func(*Command) error
	Code                    func(error) int
}

// ErrorFields are the fields that describe an error.
func (h Handlers) ErrorFields(err error) Fields {
	if code := h.Code(err); code > 0 {
		return Fields{"code": code, "message": err.Error()}
	}
	return Fields{"code": fmt.Sprintf("%T", err), "message": err.Error()}
}

func (h Handlers) execute(c *Command) {
	run := map[string]func(*Command) error{"produce": h.Produce, "consume": h.Consume, "admin": h.Admin}[c.Cmd]
	err := run(c)
	if err != nil {
		c.Emit("error", h.ErrorFields(err))
	}
	c.Emit("end", Fields{"ok": err == nil, "count": c.counted.Load()})
}

// Serve runs commands side by side until the input ends.
func (h Handlers) Serve() {
	go flushOften()
	var running sync.Map
	var tasks sync.WaitGroup
	accept := func(line string) {
		c := &Command{stop: make(chan struct{})}
		if err := json.Unmarshal([]byte(line), c); err != nil {
			panic(err)
		}
		if c.Cmd == "stop" {
			if target, found := running.Load(c.Target); found {
				target.(*Command).stopOnce.Do(func() { close(target.(*Command).stop) })
			}
			return
		}
		running.Store(c.ID, c)
		tasks.Add(1)
		go func() {
			defer tasks.Done()
			h.execute(c)
			running.Delete(c.ID)
		}()
	}
	for _, line := range os.Args[1:] {
		accept(line)
	}
	if len(os.Args) == 1 {
		input := bufio.NewScanner(os.Stdin)
		input.Buffer(nil, 1<<20)
		for input.Scan() {
			if strings.TrimSpace(input.Text()) != "" {
				accept(input.Text())
			}
		}
	}
	tasks.Wait()
	outputMu.Lock()
	output.Flush()
}
