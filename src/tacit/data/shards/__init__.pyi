from tacit.data.shards.collection import Shards as Shards
from tacit.data.shards.table import ShardedTable as ShardedTable
