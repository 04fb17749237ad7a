/** DescribeCluster: the brokers that are up. */
import { describeCluster } from '../../protocol/generated/60-describe-cluster.ts'
import { api } from '../api.ts'

export const describeClusterApi = api(describeCluster, ({ cluster }) => ({
  errorCode: 0,
  clusterId: cluster.options.clusterId,
  controllerId: cluster.controllerId,
  brokers: cluster.nodes.filter((n) => n.up).map(({ id, host, port }) => ({ brokerId: id, host, port, rack: null })),
}))
