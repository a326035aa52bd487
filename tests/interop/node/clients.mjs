// What a program with kafkajs does: it logs in, writes records and reads them as a group, or adds, lists and removes access
// rules. What it found is a line of JSON on standard output; an error ends it.
//
//   node clients.mjs records|admin|rules OPTIONS

import { readFileSync } from 'node:fs'
import kafkajs from 'kafkajs'

const { Kafka, logLevel, AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } = kafkajs
const COUNT = 100

const task = process.argv[2]
const { bootstrap, ca, certificate, mechanism, user, password, token, topic, group } = JSON.parse(process.argv[3])
const pem = certificate ? readFileSync(certificate, 'utf8') : undefined
const kafka = new Kafka({
  brokers: [bootstrap],
  ssl: ca ? { ca: readFileSync(ca, 'utf8'), cert: pem, key: pem } : undefined,
  sasl: mechanism ? login() : undefined,
  logLevel: logLevel.NOTHING,
  retry: { retries: 2 }
})

function login () {
  if (mechanism === 'OAUTHBEARER') return { mechanism, oauthBearerProvider: async () => ({ value: token }) }
  return { mechanism, username: user, password }
}

async function records () {
  const producer = kafka.producer()
  await producer.connect()
  const padding = '.'.repeat(10_000)
  await producer.send({ topic, messages: Array.from({ length: COUNT }, (_, number) => ({ value: number + padding })) })
  await producer.disconnect()

  const consumer = kafka.consumer({ groupId: group, maxWaitTimeInMs: 50 }) // ending waits for it
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const read = []
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    consumer.run({
      eachMessage: async ({ message }) => {
        if (read.push(message.value.toString().replace(padding, '')) === COUNT) resolve()
      }
    }).catch(reject)
  })
  await consumer.disconnect()
  return { read }
}

const ANY = {
  resourceType: AclResourceTypes.ANY,
  resourcePatternType: ResourcePatternTypes.ANY,
  operation: AclOperationTypes.ANY,
  permissionType: AclPermissionTypes.ANY
}
const RULE = {
  resourceType: AclResourceTypes.TOPIC,
  resourceName: 'orders',
  resourcePatternType: ResourcePatternTypes.PREFIXED,
  principal: 'User:kafkajs',
  host: '*',
  operation: AclOperationTypes.READ,
  permissionType: AclPermissionTypes.ALLOW
}

async function administer (work) {
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

const tasks = {
  records,
  admin: () => administer(async admin => {
    await admin.createAcls({ acl: [RULE] })
    const { resources } = await admin.describeAcls({ ...ANY, principal: 'User:kafkajs' })
    const { filterResponses } = await admin.deleteAcls({ filters: [{ ...ANY, principal: 'User:kafkajs' }] })
    return { listed: resources, removed: filterResponses[0].matchingAcls.length }
  }),
  rules: () => administer(admin => admin.describeAcls(ANY))
}

try {
  process.stdout.write(JSON.stringify(await tasks[task]()) + '\n')
} catch (error) {
  process.stderr.write(`${error}\n`)
  process.exitCode = 1
}
