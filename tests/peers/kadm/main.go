// Calls the methods of kadm at the broker of the first argument; prints a line of JSON for each: {"call": ..., "result": ...}.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type caller struct {
	out   *json.Encoder
	count map[string]int
}

// call prints a result, or its error; a name that comes again gets a number.
func (c *caller) call(name string, result any, err error) {
	c.count[name]++
	if c.count[name] > 1 {
		name = fmt.Sprintf("%s (%d)", name, c.count[name])
	}
	row := map[string]any{"call": name, "result": result}
	if err != nil {
		row["error"] = err.Error()
	}
	if err := c.out.Encode(row); err != nil {
		panic(err)
	}
}

func value(text string) *string { return &text }

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		panic(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	c := &caller{json.NewEncoder(os.Stdout), map[string]int{}}
	topics(ctx, c, admin)
	records(ctx, c, client, admin)
	configs(ctx, c, admin)
	groups(ctx, c, admin)
	security(ctx, c, admin)
	cluster(ctx, c, admin)
}

func topics(ctx context.Context, c *caller, admin *kadm.Client) {
	configs := map[string]*string{"retention.ms": value("60000")}
	r1, err := admin.CreateTopics(ctx, 2, 1, configs, "a", "b", "bad/name")
	c.call("CreateTopics", r1, err)
	r2, err := admin.CreateTopic(ctx, 1, 1, nil, "a")
	c.call("CreateTopic", r2, err)
	r3, err := admin.ValidateCreateTopics(ctx, 1, 9, nil, "c")
	c.call("ValidateCreateTopics", r3, err)
	r4, err := admin.CreatePartitions(ctx, 1, "a", "absent")
	c.call("CreatePartitions", r4, err)
	r5, err := admin.UpdatePartitions(ctx, 2, "a")
	c.call("UpdatePartitions", r5, err)
	r6, err := admin.ValidateCreatePartitions(ctx, 1, "b")
	c.call("ValidateCreatePartitions", r6, err)
	r7, err := admin.ValidateUpdatePartitions(ctx, 5, "b")
	c.call("ValidateUpdatePartitions", r7, err)
	r8, err := admin.ListTopics(ctx)
	c.call("ListTopics", r8, err)
	r9, err := admin.ListTopicsWithInternal(ctx, "a", "absent-topic")
	c.call("ListTopicsWithInternal", r9, err)
	r10, err := admin.Metadata(ctx, "b")
	c.call("Metadata", r10.Topics, err)
	r11, err := admin.BrokerMetadata(ctx)
	c.call("BrokerMetadata", len(r11.Brokers), err)
	r12, err := admin.DeleteTopics(ctx, "b", "absent")
	c.call("DeleteTopics", r12, err)
	r13, err := admin.DeleteTopic(ctx, "absent")
	c.call("DeleteTopic", r13, err)
}

func records(ctx context.Context, c *caller, client *kgo.Client, admin *kadm.Client) {
	for i := range 9 {
		at := time.UnixMilli(1_000_000 + int64(i))
		record := &kgo.Record{Topic: "a", Partition: int32(i % 2), Value: []byte("v"), Timestamp: at}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			panic(err)
		}
	}
	type list func(context.Context, ...string) (kadm.ListedOffsets, error)
	for name, call := range map[string]list{
		"ListStartOffsets": admin.ListStartOffsets, "ListEndOffsets": admin.ListEndOffsets,
		"ListMaxTimestampOffsets": admin.ListMaxTimestampOffsets, "ListLocalLogStartOffsets": admin.ListLocalLogStartOffsets,
		"ListLatestRemoteOffsets": admin.ListLatestRemoteOffsets, "ListCommittedOffsets": admin.ListCommittedOffsets,
	} {
		r, err := call(ctx, "a", "absent")
		c.call(name, r, err)
	}
	r1, err := admin.ListOffsetsAfterMilli(ctx, 1_000_004, "a")
	c.call("ListOffsetsAfterMilli", r1, err)
	var epochs kadm.OffsetForLeaderEpochRequest
	epochs.Add("a", 0, 0)
	epochs.Add("a", 1, 9)
	epochs.Add("absent", 0, 0)
	r2, err := admin.OffsetForLeaderEpoch(ctx, epochs)
	c.call("OffsetForLeaderEpoch", r2, err)
	var before kadm.Offsets
	before.AddOffset("a", 0, 1, -1)
	before.AddOffset("a", 1, 99, -1)
	r3, err := admin.DeleteRecords(ctx, before)
	c.call("DeleteRecords", r3, err)
	r4, err := admin.ListStartOffsets(ctx, "a")
	c.call("ListStartOffsets", r4, err)
	set := kadm.TopicsSet{}
	set.Add("a", 0)
	r5, err := admin.DescribeProducers(ctx, set)
	for _, topic := range r5 {
		for _, partition := range topic.Partitions {
			c.call("DescribeProducers", len(partition.ActiveProducers), err)
		}
	}
	r6, err := admin.DescribeTransactions(ctx, "absent")
	for err != nil && ctx.Err() == nil { // the coordinator is not there at once
		r6, err = admin.DescribeTransactions(ctx, "absent")
	}
	c.call("DescribeTransactions", r6, err)
	r7, err := admin.ListTransactions(ctx, nil, []string{"Ongoing", "NoSuchState"})
	c.call("ListTransactions", r7, err)
	r8, err := admin.ListTransactionsByTxPattern(ctx, nil, nil, "a.*")
	c.call("ListTransactionsByTxPattern", r8, err)
	r9, err := admin.WriteTxnMarkers(ctx, kadm.TxnMarkers{ProducerID: 77, Commit: true, Topics: set})
	c.call("WriteTxnMarkers", r9, err)
	r10, err := admin.DescribeAllLogDirs(ctx, set)
	for _, dirs := range r10 {
		for _, dir := range dirs {
			c.call("DescribeAllLogDirs", dir.Topics, dir.Err)
		}
	}
	var move kadm.AlterPartitionAssignmentsReq
	move.Assign("a", 0, []int32{0})
	move.Assign("a", 1, []int32{7})
	move.CancelAssign("a", 2)
	r11, err := admin.AlterPartitionAssignments(ctx, move)
	c.call("AlterPartitionAssignments", r11, err)
	r12, err := admin.ListPartitionReassignments(ctx, set)
	c.call("ListPartitionReassignments", r12, err)
	for _, how := range []kadm.ElectLeadersHow{kadm.ElectPreferredReplica, kadm.ElectLiveReplica} {
		r, err := admin.ElectLeaders(ctx, how, set)
		c.call("ElectLeaders", r, err)
	}
	var dirs kadm.AlterReplicaLogDirsReq
	dirs.Add("/no/such/dir", set)
	r13, err := admin.AlterAllReplicaLogDirs(ctx, dirs)
	c.call("AlterAllReplicaLogDirs", r13, err)
}

func configs(ctx context.Context, c *caller, admin *kadm.Client) {
	good := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: value("5")}}
	bad := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: value("soon")}}
	type alter func(context.Context, []kadm.AlterConfig, ...string) (kadm.AlterConfigsResponses, error)
	for _, row := range []struct {
		name string
		call alter
	}{
		{"ValidateAlterTopicConfigs", admin.ValidateAlterTopicConfigs}, {"AlterTopicConfigs", admin.AlterTopicConfigs},
		{"ValidateAlterTopicConfigsState", admin.ValidateAlterTopicConfigsState}, {"AlterTopicConfigsState", admin.AlterTopicConfigsState},
	} {
		for _, values := range [][]kadm.AlterConfig{good, bad} {
			r, err := row.call(ctx, values, "a", "absent")
			c.call(row.name, r, err)
		}
	}
	r1, err := admin.DescribeTopicConfigs(ctx, "a", "absent")
	c.call("DescribeTopicConfigs", r1, err)
	threads := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "log.cleaner.threads", Value: value("2")}}
	fixed := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "node.id", Value: value("2")}}
	for _, values := range [][]kadm.AlterConfig{threads, fixed} {
		r2, err := admin.ValidateAlterBrokerConfigs(ctx, values, 0)
		c.call("ValidateAlterBrokerConfigs", r2, err)
		r3, err := admin.AlterBrokerConfigs(ctx, values)
		c.call("AlterBrokerConfigs", r3, err)
		r4, err := admin.ValidateAlterBrokerConfigsState(ctx, values)
		c.call("ValidateAlterBrokerConfigsState", r4, err)
		r5, err := admin.AlterBrokerConfigsState(ctx, values)
		c.call("AlterBrokerConfigsState", r5, err)
	}
	r6, err := admin.DescribeBrokerConfigs(ctx)
	c.call("DescribeBrokerConfigs", r6, err)
	r7, err := admin.ListConfigResources(ctx)
	c.call("ListConfigResources", r7, err)
}

func groups(ctx context.Context, c *caller, admin *kadm.Client) {
	var offsets kadm.Offsets
	offsets.AddOffset("a", 0, 2, -1)
	offsets.AddOffset("a", 2, 3, 0)
	r1, err := admin.CommitOffsets(ctx, "g", offsets)
	c.call("CommitOffsets", r1, err)
	c.call("CommitAllOffsets", nil, admin.CommitAllOffsets(ctx, "g", offsets))
	r2, err := admin.FetchOffsets(ctx, "g")
	c.call("FetchOffsets", r2, err)
	r3, err := admin.FetchOffsetsForTopics(ctx, "g", "a")
	c.call("FetchOffsetsForTopics", r3, err)
	c.call("FetchManyOffsets", admin.FetchManyOffsets(ctx, "g", "absent"), nil)
	r4, err := admin.Lag(ctx, "g")
	c.call("Lag", r4, err)
	r5, err := admin.ListGroups(ctx)
	c.call("ListGroups", r5, err)
	r6, err := admin.ListGroupsByType(ctx, []string{"classic"}, "Empty")
	c.call("ListGroupsByType", r6, err)
	r7, err := admin.DescribeGroups(ctx, "g", "absent")
	c.call("DescribeGroups", r7, err)
	r8, err := admin.DescribeConsumerGroups(ctx, "g", "absent")
	c.call("DescribeConsumerGroups", r8, err)
	r9, err := admin.DescribeShareGroups(ctx, "g", "absent")
	c.call("DescribeShareGroups", r9, err)
	r10, err := admin.LeaveGroup(ctx, kadm.LeaveGroup("g").InstanceIDs("absent"))
	c.call("LeaveGroup", r10, err)
	set := kadm.TopicsSet{}
	set.Add("a", 0)
	set.Add("a", 9)
	r11, err := admin.DeleteOffsets(ctx, "g", set)
	c.call("DeleteOffsets", r11, err)
	r12, err := admin.DeleteGroups(ctx, "g", "absent")
	c.call("DeleteGroups", r12, err)
	r13, err := admin.DeleteGroup(ctx, "absent")
	c.call("DeleteGroup", r13, err)
	r14, err := admin.AlterShareGroupOffsets(ctx, "s", offsets)
	c.call("AlterShareGroupOffsets", r14, err)
	r15, err := admin.DescribeShareGroupOffsets(ctx, "s")
	c.call("DescribeShareGroupOffsets", r15, err)
	r16, err := admin.DeleteShareGroupOffsets(ctx, "s", "a", "absent")
	c.call("DeleteShareGroupOffsets", r16, err)
	c.call("FindGroupCoordinators", admin.FindGroupCoordinators(ctx, "g", ""), nil)
	c.call("FindTxnCoordinators", admin.FindTxnCoordinators(ctx, "t"), nil)
}

func security(ctx context.Context, c *caller, admin *kadm.Client) {
	acl := func() *kadm.ACLBuilder {
		return kadm.NewACLs().Topics("a").ResourcePatternType(kadm.ACLPatternLiteral).
			Allow("User:x").AllowHosts("*").Operations(kadm.OpRead, kadm.OpWrite)
	}
	r1, err := admin.CreateACLs(ctx, acl())
	c.call("CreateACLs", r1, err)
	r2, err := admin.DescribeACLs(ctx, acl())
	c.call("DescribeACLs", r2, err)
	r3, err := admin.DeleteACLs(ctx, acl())
	c.call("DeleteACLs", r3, err)
	r4, err := admin.DescribeACLs(ctx, acl())
	c.call("DescribeACLs", r4, err)
	entity := kadm.ClientQuotaEntity{{Type: "user", Name: value("x")}}
	for _, op := range []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 5}, {Key: "no_such", Value: 5}} {
		entries := []kadm.AlterClientQuotaEntry{{Entity: entity, Ops: []kadm.AlterClientQuotaOp{op}}}
		r5, err := admin.ValidateAlterClientQuotas(ctx, entries)
		c.call("ValidateAlterClientQuotas", r5, err)
		r6, err := admin.AlterClientQuotas(ctx, entries)
		c.call("AlterClientQuotas", r6, err)
	}
	ofX := []kadm.DescribeClientQuotaComponent{{Type: "user", MatchName: value("x")}}
	r7, err := admin.DescribeClientQuotas(ctx, true, ofX)
	for err == nil && len(r7) == 0 && ctx.Err() == nil { // a broker responds before it has applied a change
		r7, err = admin.DescribeClientQuotas(ctx, true, ofX)
	}
	c.call("DescribeClientQuotas", r7, err)
	scram := []kadm.UpsertSCRAM{{User: "x", Mechanism: kadm.ScramSha256, Iterations: 4096, Password: "p"}}
	r8, err := admin.AlterUserSCRAMs(ctx, []kadm.DeleteSCRAM{{User: "absent", Mechanism: kadm.ScramSha512}}, scram)
	c.call("AlterUserSCRAMs", r8, err)
	r9, err := admin.DescribeUserSCRAMs(ctx, "x", "absent")
	c.call("DescribeUserSCRAMs", r9, err)
	r10, err := admin.CreateDelegationToken(ctx, kadm.CreateDelegationToken{})
	c.call("CreateDelegationToken", r10, err)
	r11, err := admin.DescribeDelegationTokens(ctx)
	c.call("DescribeDelegationTokens", r11, err)
	_, err = admin.RenewDelegationToken(ctx, []byte("h"), time.Hour)
	c.call("RenewDelegationToken", nil, err)
	_, err = admin.ExpireDelegationToken(ctx, []byte("h"), time.Hour)
	c.call("ExpireDelegationToken", nil, err)
}

func cluster(ctx context.Context, c *caller, admin *kadm.Client) {
	r1, err := admin.ListBrokers(ctx)
	c.call("ListBrokers", len(r1), err)
	r2, err := admin.ApiVersions(ctx)
	for _, broker := range r2 {
		broker.EachKeySorted(func(key, min, max int16) { c.call(fmt.Sprintf("ApiVersions %d", key), []int16{min, max}, broker.Err) })
	}
	c.call("ApiVersions", len(r2), err)
	r3, err := admin.UpdateFeatures(ctx, true, kadm.FeatureUpdate{Feature: "no.such", MaxVersionLevel: 1, UpgradeType: 1})
	c.call("UpdateFeatures", r3, err)
}
