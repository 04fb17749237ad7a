package main

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/IBM/sarama"

	"headgate/clients/program"
)

func admin(c *program.Command) error {
	client, err := sarama.NewClusterAdmin(c.Brokers(), base(c))
	if err != nil {
		return err
	}
	defer client.Close()
	result, err := call(c, client)
	if err == nil {
		c.Emit("result", program.Fields{"op": c.Op, "result": result})
	}
	return err
}

func call(c *program.Command, client sarama.ClusterAdmin) (any, error) {
	switch c.Op {
	case "createTopic":
		detail := &sarama.TopicDetail{NumPartitions: int32(*c.Partitions), ReplicationFactor: 1}
		return nil, client.CreateTopic(c.Topic, detail, false)
	case "deleteTopic":
		return nil, client.DeleteTopic(c.Topic)
	case "addPartitions":
		return nil, client.CreatePartitions(c.Topic, int32(*c.Partitions), nil, false)
	case "describeTopic":
		partitions, err := partitionsOf(c, client)
		return []any{program.Fields{"name": c.Topic, "partitions": partitions}}, err
	case "listTopics":
		topics, err := client.ListTopics()
		return names(topics), err
	case "describeConfigs":
		entries, err := client.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: c.Topic})
		pairs := [][2]string{}
		for _, entry := range entries {
			pairs = append(pairs, [2]string{entry.Name, entry.Value})
		}
		sort.Slice(pairs, func(a, b int) bool { return pairs[a][0] < pairs[b][0] })
		return pairs, err
	case "alterConfigs":
		changes := map[string]sarama.IncrementalAlterConfigsEntry{}
		for name, value := range c.Configs {
			changes[name] = sarama.IncrementalAlterConfigsEntry{Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}
		}
		return nil, client.IncrementalAlterConfig(sarama.TopicResource, c.Topic, changes, false)
	case "describeCluster":
		return cluster(client)
	case "listGroups":
		groups, err := client.ListConsumerGroups()
		return names(groups), err
	case "describeGroup":
		groups, err := client.DescribeConsumerGroups([]string{c.Group})
		if err != nil {
			return nil, err
		}
		return []any{[]any{groups[0].GroupId, int(groups[0].Err), groups[0].State, len(groups[0].Members)}}, nil
	case "deleteGroup":
		return nil, client.DeleteConsumerGroup(c.Group)
	case "groupOffsets":
		return groupOffsets(c, client)
	case "endOffsets":
		return endOffsets(c, client)
	}
	return nil, fmt.Errorf("unknown op %s", c.Op)
}

func names[T any](all map[string]T) []string {
	list := []string{}
	for name := range all {
		list = append(list, name)
	}
	sort.Strings(list)
	return list
}

func cluster(client sarama.ClusterAdmin) (any, error) {
	nodes, _, err := client.DescribeCluster()
	brokers := []program.Fields{}
	for _, node := range nodes {
		host, port, _ := strings.Cut(node.Addr(), ":")
		number, _ := strconv.Atoi(port)
		brokers = append(brokers, program.Fields{"nodeId": node.ID(), "host": host, "port": number})
	}
	return program.Fields{"brokers": brokers}, err
}

func partitionsOf(c *program.Command, client sarama.ClusterAdmin) ([]int32, error) {
	topics, err := client.DescribeTopics([]string{c.Topic})
	if err != nil {
		return nil, err
	}
	list := []int32{}
	for _, one := range topics[0].Partitions {
		list = append(list, one.ID)
	}
	sort.Slice(list, func(a, b int) bool { return list[a] < list[b] })
	if topics[0].Err != sarama.ErrNoError {
		return nil, topics[0].Err
	}
	return list, nil
}

func groupOffsets(c *program.Command, client sarama.ClusterAdmin) (any, error) {
	answer, err := client.ListConsumerGroupOffsets(c.Group, nil)
	if err != nil {
		return nil, err
	}
	pairs := [][2]int64{}
	for partition, block := range answer.Blocks[c.Topic] {
		pairs = append(pairs, [2]int64{int64(partition), block.Offset})
	}
	sort.Slice(pairs, func(a, b int) bool { return pairs[a][0] < pairs[b][0] })
	return pairs, nil
}

func endOffsets(c *program.Command, client sarama.ClusterAdmin) (any, error) {
	partitions, err := partitionsOf(c, client)
	if err != nil {
		return nil, err
	}
	wanted := map[int32]int64{}
	for _, partition := range partitions {
		wanted[partition] = sarama.OffsetNewest
	}
	answer, err := client.ListOffsets(map[string]map[int32]int64{c.Topic: wanted}, nil)
	pairs := [][2]int64{}
	for partition, one := range answer[c.Topic] {
		pairs = append(pairs, [2]int64{int64(partition), one.Offset})
	}
	sort.Slice(pairs, func(a, b int) bool { return pairs[a][0] < pairs[b][0] })
	return pairs, err
}
