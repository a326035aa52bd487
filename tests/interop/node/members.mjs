// A member of a consumer group with @platformatic/kafka, in a process of its own, until SIGTERM. It tells what happens
// to it as the programs of other clients do: a line of JSON an event, with the time it happened.
//
//   node members.mjs OPTIONS

import { Consumer } from '@platformatic/kafka'

const { bootstrap, group, topic } = JSON.parse(process.argv[2])

function say (event, facts = {}) {
  process.stdout.write(JSON.stringify({ at: Number(process.hrtime.bigint()), event, ...facts }) + '\n')
}

const consumer = new Consumer({
  clientId: 'member',
  groupId: group,
  bootstrapBrokers: [bootstrap],
  groupProtocol: 'consumer',
  autocommit: false,
  maxWaitTime: 50
})
const stream = await consumer.consume({ topics: [topic], mode: 'committed', fallbackMode: 'earliest' })

let owned = ''
const watch = setInterval(() => {
  const partitions = (consumer.assignments ?? []).flatMap(each => each.partitions).sort((a, b) => a - b)
  if (owned !== JSON.stringify(partitions)) {
    owned = JSON.stringify(partitions)
    say('owns', { partitions })
  }
}, 20)

process.once('SIGTERM', () => stream.close())
stream.on('error', error => say('error', { text: String(error) }))
for await (const message of stream) {
  say('read', { partition: message.partition, offset: Number(message.offset) })
  try {
    await message.commit()
    say('committed', { offsets: { [message.partition]: Number(message.offset) + 1 } })
  } catch (error) {
    say('commit failed', { error: String(error) })
  }
}
clearInterval(watch)
await consumer.close()
say('closed')
