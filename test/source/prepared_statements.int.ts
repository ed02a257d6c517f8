import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { connectToSource } from '../../src/source/source_connection.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** The start of the message that tells a client the id of its process, up to the id. */
const backendKeyData = Buffer.from([0x4b, 0, 0, 0, 12]);

/** Opens a proxy that tells clients another process id than PostgreSQL's, as a pooler does. */
async function openPooler(databaseUrl: string): Promise<{ readonly url: string; close(): void }> {
  const url = new URL(databaseUrl);
  const server = createServer((client) => {
    const upstream = connect(Number(url.port), url.hostname);
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
    client.pipe(upstream);
    upstream.on('data', (chunk) => {
      const found = chunk.indexOf(backendKeyData);
      if (found >= 0) chunk.writeInt32BE(1, found + backendKeyData.length);
      client.write(chunk);
    });
    upstream.on('close', () => client.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const through = new URL(databaseUrl);
  through.port = String((server.address() as { port: number }).port);
  return { url: through.href, close: () => server.close() };
}

/** Sends a statement ten times over one connection, and returns the plans that the connection has kept for it. */
async function plansAfterRepeating(sourceUrl: string): Promise<number[]> {
  const connections = connectToSource({
    sourceUrl,
    applicationName: 'exportd-test',
    statementTimeoutMs: 10_000,
    maxConnections: 1,
  });
  try {
    for (let count = 0; count < 10; count += 1)
      await connections.read({ 'exportd.team_id': String(count) }, undefined, async ({ connection }) => {
        const { rows } = await connection.query<{ team_id: string }>(
          `select current_setting('exportd.team_id') as team_id`,
          [],
        );
        expect(rows).toEqual([{ team_id: String(count) }]);
      });
    return await connections.read({}, undefined, async ({ connection }) => {
      const { rows } = await connection.query<{ plans: number }>(
        `select generic_plans::int as plans from pg_prepared_statements where statement like '%exportd.team_id%'`,
      );
      return rows.map(({ plans }) => plans);
    });
  } finally {
    await connections.close();
  }
}

it('a statement that all runs send is planned once for each connection', async () => {
  expect(await plansAfterRepeating(database.url)).toEqual([5]);
});

it('nothing is prepared if a pooler may lead the next transaction to another session', async () => {
  const pooler = await openPooler(database.url);
  try {
    expect(await plansAfterRepeating(pooler.url)).toEqual([]);
  } finally {
    pooler.close();
  }
});
