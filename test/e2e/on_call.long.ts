/** The on-call drill: twelve faults are made one by one, and everything that people look at says the same of each. */
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { withCodesLast, withLocalTimes } from '../../src/console/formatting/format.ts';
import { inWords } from '../../src/console/pages/edit/form_fields.ts';
import type { Condition } from '../../src/domain/condition.ts';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { createWebhookSecret } from '../../src/notifications/send_webhook.ts';
import { exportd } from '../cli/command_line.ts';
import { type ConsolePage, launchBrowser, openConsole } from '../console/browser.ts';
import { type FakeServer, startFakeServer } from '../destination/fake_server.ts';
import { type Receiver, startReceiver } from '../notifications/receiver.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { fromSetUp } from '../setup/environment.ts';
import { hourAgo } from '../setup/hours.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { waitFor } from '../setup/wait_for.ts';
import { ruleFile } from './monitored_stack.ts';
import { type Prometheus, startPrometheus } from './prometheus.ts';
import { insertEvents } from './rows.ts';
import { type ApiResponse, type Stack, startStack } from './stack.ts';
import type { ConditionCause } from '../../src/domain/condition_causes.ts';

/** How long the condition may take to name a cause. */
const namedWithinMs = 60_000;
/** How long everything may take to be ok, and the recovery to be told, after the cure. */
const curedWithinMs = 120_000;
/** Set to `none` to measure the times of the product's own settings. */
const shortened = process.env.EXPORTD_ON_CALL_SETTINGS !== 'none';

type GateState = 'open' | 'refused' | 'silent';

/** A server that passes connections on, refuses them, or accepts them and is silent. */
interface Gate {
  readonly port: number;
  set(state: GateState): Promise<void>;
}

let stack: Stack;
let source: TestDatabase;
let receiver: Receiver;
let operator: Receiver;
/** Slack and PagerDuty, by path. */
let chats: FakeServer;
let prometheus: Prometheus;
let browser: Browser;
let opened: ConsolePage;
let gates: Readonly<Record<'source' | 'store', Gate>>;
let monitoring: Readonly<Record<'server' | 'worker', string>>;

/** A login of the source that the drill takes away. */
const reader = `on_call_${randomBytes(6).toString('hex')}`;

/** Reports a figure of the drill at once: it takes minutes. */
const report = (figure: string): void => void process.stderr.write(`${figure}\n`);

async function openGate(port: number, target: URL): Promise<Gate> {
  const sockets = new Set<Socket>();
  let state: GateState = 'open';
  let server: Server | undefined;
  const track = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  };
  const listen = async (): Promise<void> => {
    server = createServer((client) => {
      track(client);
      if (state === 'silent') return;
      const upstream = track(connect(Number(target.port), target.hostname));
      client.pipe(upstream).pipe(client);
      for (const [one, other] of [
        [client, upstream],
        [upstream, client],
      ] as const)
        one.on('close', () => other.destroy());
    }).listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  await listen();
  return {
    port,
    set: async (next) => {
      state = next;
      const closing = server;
      if (closing) {
        const closed = once(closing, 'close');
        closing.close();
        for (const socket of sockets) socket.destroy();
        await closed;
        server = undefined;
      }
      if (next !== 'refused') await listen();
    },
  };
}

beforeAll(async () => {
  source = await createTestDatabase();
  const secret = createWebhookSecret();
  receiver = await startReceiver(secret);
  operator = await startReceiver(secret);
  chats = await startFakeServer((_, response) => response.writeHead(200).end());
  const ports = await assignPorts(join(fromSetUp('EXPORTD_TEST_FOLDER'), `${randomUUID()}.ports.json`), [
    'server',
    'worker',
    'source',
    'store',
  ]);
  gates = {
    source: await openGate(ports.source, new URL(source.url)),
    store: await openGate(ports.store, new URL(fromSetUp('EXPORTD_TEST_S3_ENDPOINT'))),
  };
  monitoring = {
    server: `http://127.0.0.1:${ports.server}`,
    worker: `http://127.0.0.1:${ports.worker}`,
  };
  await source.pool.query(`create role ${reader} superuser login password 'on-call'`);
  const sourceUrl = new URL(source.url);
  sourceUrl.port = String(gates.source.port);
  sourceUrl.username = reader;
  sourceUrl.password = 'on-call';
  stack = await startStack('on-call', {
    SOURCE_DATABASE_URL: sourceUrl.href,
    EXPORTD_MONITORING_PORT: String(ports.server),
    EXPORTD_WORKER_HTTP_PORT: String(ports.worker),
    EXPORTD_OPERATOR_WEBHOOK_URL: operator.url,
    EXPORTD_OPERATOR_WEBHOOK_SECRET: secret,
    EXPORTD_RUN_RETRY_LIMIT: '0',
    EXPORTD_RECONCILE_INTERVAL: shortened ? '5s' : '1m',
    EXPORTD_ACTIVITY_RETRY_INITIAL: '1s',
    EXPORTD_ACTIVITY_RETRY_MAX: '1m',
  });
  await insertEvents(source.pool, stack.projectId, hourAgo(8), 800, 8 * 3_600);
  for (const webhook of [
    { url: receiver.url, secret },
    { url: `${chats.endpoint}/slack`, format: 'slack' },
    { url: `${chats.endpoint}/pagerduty?routing_key=R0123`, format: 'pagerduty' },
  ])
    await stack.call('POST', '/webhooks/', webhook);
  prometheus = await startPrometheus(Object.values(monitoring), ruleFile);
  browser = await launchBrowser();
  opened = await openConsole(browser, stack.baseUrl, { key: stack.key });
});
afterAll(async () => {
  await browser.close();
  await stack.stop();
  await receiver.close();
  await operator.close();
  await chats.close();
  await prometheus.close();
  for (const gate of Object.values(gates)) await gate.set('refused');
  await source.pool.query(`drop role ${reader}`);
  await source.drop();
});

const endpoint = (): string => `http://127.0.0.1:${gates.store.port}`;
const createExport = (
  name: string,
  config: Readonly<Record<string, unknown>> = {},
  fields: Readonly<Record<string, unknown>> = {},
): Promise<string> => stack.createExport({ name, ...fields }, { endpoint_url: endpoint(), ...config });

async function backfill(id: string, from: number, to: number): Promise<void> {
  const body = { start_at: hourAgo(from).toISOString(), end_at: hourAgo(to).toISOString() };
  expect((await stack.call('POST', `/batch_exports/${id}/backfill/`, body)).status).toBe(200);
}

const conditionOf = async (id: string): Promise<Condition> =>
  (await stack.call('GET', `/batch_exports/${id}/`)).body.condition as Condition;

const changeConfig = async (id: string, config: Readonly<Record<string, unknown>>): Promise<void> => {
  const body = { destination: { type: 'S3', config } };
  expect((await stack.call('PATCH', `/batch_exports/${id}/`, body)).status).toBe(200);
};

const command = (...args: string[]) =>
  exportd({ EXPORTD_BASE_URL: stack.baseUrl, EXPORTD_API_KEY: stack.key }, ...args);

const json = async (url: string): Promise<Record<string, unknown>> =>
  (await (await fetch(url)).json()) as Record<string, unknown>;

const faultsIn = (body: Record<string, unknown>): string[] =>
  (body.operator_faults as { message: string }[] | null)?.map(({ message }) => message) ?? ['unknown'];

/** The line of an export, or of the outage that it shares with others. */
const lineOf = (
  output: string,
  { id, incident }: { id: string; incident?: Condition['incident'] | undefined },
): string => {
  const lines = output.split('\n');
  return (
    lines.find((line) => line.includes(id)) ??
    lines.find((line) => incident && line.includes(incident.summary)) ??
    ''
  );
};

/** The incident that a message is about. */
const incidentIn = ({ incident, incident_id }: Readonly<Record<string, unknown>>): unknown =>
  incident_id ?? (incident as { id: string } | null | undefined)?.id;

/** What Slack and PagerDuty have got of an incident, in order. */
function chatsOf(incident: string): { readonly slack: number; readonly pagerDuty: string[] } {
  const about = (path: string) =>
    chats.received.filter((one) => one.path.startsWith(path) && one.body.includes(incident));
  return {
    slack: about('/slack').length,
    pagerDuty: about('/pagerduty').map(({ body }) => {
      const { event_action, dedup_key } = JSON.parse(body) as { event_action: string; dedup_key: string };
      return dedup_key === incident ? event_action : 'of another incident';
    }),
  };
}

/** Lines of the logs of server and workers that name an incident. */
const loggedOf = (incident: string): number =>
  ['server', 'worker'].flatMap((part) =>
    readFileSync(join(tmpdir(), 'exportd-e2e-logs', `on-call.${part}.log`), 'utf8')
      .split('\n')
      .filter((line) => line.includes(incident)),
  ).length;

/** What `exportd doctor` says of the exports. It counts them, and fails where the operator has to act, or for an outage. */
async function diagnose(): Promise<string | undefined> {
  const environment = { DATABASE_URL: stack.databaseUrl, TEMPORAL_ADDRESS: stack.temporalAddress };
  const { stdout } = await exportd(environment, 'doctor', '--json');
  return (JSON.parse(stdout) as { check: string; detail: string }[]).find(
    ({ check }) => check === 'conditions',
  )?.detail;
}

/** What the public port says of the operator's faults without a key: the fields, and whether it says anything else of them. */
async function publicFaults(messages: readonly string[]): Promise<unknown> {
  const response = await fetch(`${stack.baseUrl}/readyz`);
  const { operator_faults = [], act } = (await response.json()) as {
    operator_faults?: readonly object[] | null;
    act?: string;
  };
  const text = JSON.stringify(operator_faults);
  const secret = [stack.bucket.bucket, '127.0.0.1', reader, 'Tests', ...messages];
  return {
    fields: [...new Set(operator_faults?.flatMap(Object.keys))].toSorted(),
    named: secret.filter((one) => `${text}${act}`.includes(one)),
  };
}

/** What every surface says of an export, in the words of its cause and sentence. */
async function surfacesOf(id: string): Promise<Record<string, unknown>> {
  const [list, status, statusJson, show, why, names, doctor] = await Promise.all([
    stack.call('GET', '/batch_exports/?limit=1000'),
    command('status'),
    command('status', '--json'),
    command('export', 'show', id),
    command('why', id),
    command('export', 'list'),
    diagnose(),
  ]);
  const found = (list.body.results as { id: string; condition: Condition }[]).find((one) => one.id === id);
  const { batch_exports } = JSON.parse(statusJson.stdout) as {
    batch_exports: { id: string; condition: Condition }[];
  };
  const metrics = await (await fetch(`${monitoring.server}/metrics`)).text();
  return {
    list: found?.condition,
    status: lineOf(status.stdout, { id, incident: found?.condition.incident }),
    exit: [status.code, statusJson.code],
    statusJson: batch_exports.find((one) => one.id === id)?.condition,
    show: show.stdout,
    why: why.stdout,
    doctor,
    names: lineOf(names.stdout, { id }),
    metrics: metrics.split('\n').filter((line) => line.startsWith('exportd_export_condition')),
    server: faultsIn(await json(`${monitoring.server}/readyz`)),
  };
}

/** What pages say of an export: of an outage, without what of the export waits. */
async function sentenceOf(id: string): Promise<string> {
  const { summary, incident } = await conditionOf(id);
  // A code of an error stands behind all that the page says.
  const sentence = withCodesLast(incident?.summary ?? summary).replace(/ \([A-Za-z, ]+\)$/, '');
  return withLocalTimes(inWords(sentence), 'UTC');
}

/** Shows the list and the page of the export in Chromium, until both show the sentence. A probe of a bucket may change it. */
async function expectInConsole(id: string): Promise<void> {
  const { page } = opened;
  for (const path of ['/', `/exports/${id}`]) {
    await page.goto(path);
    await waitFor(
      async () =>
        page
          .getByText(await sentenceOf(id))
          .first()
          .isVisible(),
      `${path} shows the condition`,
      namedWithinMs,
    );
  }
}

interface Fault {
  readonly name: string;
  /** The only one that rings. */
  readonly alert: string;
  readonly cause: ConditionCause;
  readonly owner: Condition['owner'];
  /** Makes the fault, and returns the export that has it. */
  make(): Promise<string>;
  /** What the owner does before the actions of the condition, which are then sent. */
  repair?(id: string): Promise<void>;
  /** What webhooks are told: of the project, or of the operator. */
  readonly told: { readonly by: 'project' | 'operator'; readonly begin: string; readonly end: string };
  /** Whether the worker runs, which shows the operator's faults too. */
  readonly withoutWorker?: boolean;
}

const project = (begin: string, end: string): Fault['told'] => ({ by: 'project', begin, end });
const operatorTold: Fault['told'] = {
  by: 'operator',
  begin: 'operator_fault',
  end: 'operator_fault.resolved',
};

/** Waits until the interval of a backfill is exported. @returns its run */
async function exportedRun(id: string): Promise<string> {
  await waitFor(async () => (await conditionOf(id)).cause === 'ok', 'the interval is exported');
  const [run] = await stack.runs(id);
  await stack.waitForRun(id, run?.id ?? '', 'Completed');
  return run?.id ?? '';
}

const deleteRows = (from: number, to: number): Promise<unknown> =>
  source.pool.query(
    `delete from events where uuid in (
       select uuid from events where inserted_at >= $1 and inserted_at < $2 limit 40)`,
    [hourAgo(from), hourAgo(to)],
  );

/** Keeps or removes what the condition asks about. */
async function decide(id: string, decision: 'keep' | 'remove'): Promise<void> {
  const { affected, actions } = await conditionOf(id);
  const [range] = affected.ranges;
  expect(actions).toMatchObject([{ method: 'GET' }]);
  const path = `/batch_exports/${id}/intervals/${range?.start}/difference/`;
  const { missing_rows } = (await stack.call('GET', path)).body;
  expect(missing_rows).toBe(40);
  const decided = await stack.call('POST', path, { decision, reason: 'ticket 7', rows: missing_rows });
  expect([decided.status, decided.text]).toEqual([200, expect.anything()]);
}

const faults: readonly Fault[] = [
  {
    name: 'a wrong key',
    alert: 'ExportdExportError',
    cause: 'access_denied',
    owner: 'tenant',
    make: async () => {
      const id = await createExport('Wrong key', { aws_secret_access_key: 'wrong' });
      await backfill(id, 3, 2);
      return id;
    },
    repair: (id) =>
      changeConfig(id, {
        aws_access_key_id: stack.bucket.accessKeyId,
        aws_secret_access_key: stack.bucket.secretAccessKey,
      }),
    told: project('run.failed', 'batch_export.recovered'),
  },
  {
    name: 'an endpoint that refuses connections',
    alert: 'ExportdDestinationUnavailable',
    cause: 'destination_unavailable',
    owner: 'tenant',
    make: async () => {
      const id = await createExport('Refused');
      await gates.store.set('refused');
      await backfill(id, 4, 2);
      return id;
    },
    repair: () => gates.store.set('open'),
    told: project('destination.unavailable', 'destination.recovered'),
  },
  {
    name: 'a bucket that is silent',
    alert: 'ExportdDestinationUnavailable',
    cause: 'destination_unavailable',
    owner: 'tenant',
    make: async () => {
      const id = await createExport('Silent');
      await gates.store.set('silent');
      await backfill(id, 4, 2);
      return id;
    },
    repair: () => gates.store.set('open'),
    told: project('destination.unavailable', 'destination.recovered'),
  },
  {
    name: 'a source that is down',
    alert: 'ExportdDependencyDown',
    cause: 'source_unavailable',
    owner: 'operator',
    make: async () => {
      const id = await createExport('Source down');
      await gates.source.set('refused');
      await backfill(id, 4, 2);
      return id;
    },
    repair: () => gates.source.set('open'),
    told: project('source.unavailable', 'source.recovered'),
  },
  {
    name: 'a login of the source that is refused',
    alert: 'ExportdDependencyDown',
    cause: 'source_unavailable',
    owner: 'operator',
    make: async () => {
      const id = await createExport('Locked out');
      await source.pool.query(`alter role ${reader} nologin`);
      await source.pool.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [
        reader,
      ]);
      await backfill(id, 4, 2);
      return id;
    },
    repair: async () => {
      await source.pool.query(`alter role ${reader} login`);
    },
    told: project('source.unavailable', 'source.recovered'),
  },
  {
    name: 'a column of the source that was dropped',
    alert: 'ExportdOperatorFault',
    cause: 'operator_fault',
    owner: 'operator',
    make: async () => {
      const id = await createExport('Column dropped');
      await source.pool.query('alter table events rename column properties to former_properties');
      await backfill(id, 4, 2);
      return id;
    },
    repair: async () => {
      await source.pool.query('alter table events rename column former_properties to properties');
    },
    told: operatorTold,
  },
  {
    name: 'an interval that is held',
    alert: 'ExportdExportError',
    cause: 'held',
    owner: 'tenant',
    make: async () => {
      const id = await createExport('Held');
      await backfill(id, 3, 2);
      const run = await exportedRun(id);
      await deleteRows(3, 2);
      await stack.call('POST', `/batch_exports/${id}/runs/${run}/retry/`, {});
      return id;
    },
    repair: (id) => decide(id, 'keep'),
    told: project('run.held', 'batch_export.recovered'),
  },
  {
    name: 'files that a verification finds to differ',
    alert: 'ExportdVerifyFailed',
    cause: 'differs',
    owner: 'tenant',
    make: async () => {
      const id = await createExport('Differs');
      await backfill(id, 5, 4);
      await exportedRun(id);
      await deleteRows(5, 4);
      const start = hourAgo(5).toISOString();
      await stack.call('POST', `/batch_exports/${id}/intervals/${start}/verifications/`, {});
      return id;
    },
    repair: (id) => decide(id, 'remove'),
    told: project('export.differs', 'export.agrees'),
  },
  {
    name: 'an export that was paused by itself',
    alert: 'ExportdExportError',
    cause: 'paused_by_failures',
    owner: 'tenant',
    make: async () => {
      const id = await createExport(
        'Paused by itself',
        { bucket_name: 'there-is-none' },
        { interval: 'every 1 minutes', end_at: minuteAgo(0).toISOString() },
      );
      await stack.pool.query(
        `update exportd.stream_states set state = jsonb_set(state, '{scheduled_until}', to_jsonb($2::text))
         where stream_type = 'batch_export' and stream_id = $1`,
        [id, minuteAgo(4).toISOString()],
      );
      await stack.call('PATCH', `/batch_exports/${id}/`, { name: 'Paused by itself, soon' });
      return id;
    },
    repair: (id) => changeConfig(id, { bucket_name: stack.bucket.bucket }),
    told: project('batch_export.paused', 'batch_export.recovered'),
  },
  {
    name: 'holes between exported ranges',
    alert: 'ExportdHoles',
    cause: 'holes',
    owner: 'tenant',
    make: async () => {
      const id = await createExport('Holes');
      await backfill(id, 8, 7);
      await backfill(id, 3, 2);
      return id;
    },
    told: project('export.holes', 'export.holes_filled'),
  },
  {
    name: 'no worker',
    alert: 'ExportdNoWorker',
    cause: 'no_worker',
    owner: 'operator',
    make: async () => {
      const id = await createExport('No worker', {}, { interval: 'day' });
      // It hangs, as a swapping machine does, and is killed in the end.
      stack.workers.at(-1)?.pause();
      // It is accepted, and pending. Its days have ended.
      void stack.call('POST', `/batch_exports/${id}/backfill/`, {
        start_at: hourAgo(48).toISOString(),
        end_at: hourAgo(24).toISOString(),
      });
      return id;
    },
    repair: async () => {
      await stack.killWorker();
      await stack.startWorker();
    },
    told: operatorTold,
    withoutWorker: true,
  },
  {
    name: 'a key ring that opens nothing',
    alert: 'ExportdOperatorFault',
    cause: 'operator_fault',
    owner: 'operator',
    make: async () => {
      const id = await createExport('Key ring');
      await stack.workers.at(-1)?.stop();
      await stack.startWorker({ EXPORTD_ENCRYPTION_KEYS: `other:${randomBytes(32).toString('base64')}` });
      await backfill(id, 3, 2);
      return id;
    },
    repair: async () => {
      await stack.workers.at(-1)?.stop();
      await stack.startWorker();
    },
    told: operatorTold,
  },
];

const receiverOf = ({ told }: Fault): Receiver => (told.by === 'project' ? receiver : operator);

/** Expects every surface to say the same of the fault. @returns the condition */
async function expectAgreement(fault: Fault, id: string): Promise<Condition> {
  const condition = await conditionOf(id);
  const { severity, cause, summary, owner } = condition;
  expect([cause, owner]).toEqual([fault.cause, fault.owner]);
  const found = await surfacesOf(id);
  expect(found).toEqual({
    list: condition,
    status: expect.stringMatching(new RegExp(`^${severity} +${cause} `)),
    exit: [2, 2],
    statusJson: condition,
    show: expect.stringContaining(`Condition: ${cause} (${severity}): ${summary}`),
    why: expect.stringContaining(summary),
    doctor: expect.stringMatching(/\d+ of \d+ exports? needs? attention/),
    names: expect.stringMatching(new RegExp(` ${cause} `)),
    metrics: expect.arrayContaining([expect.stringContaining(`severity="${severity}",cause="${cause}"`)]),
    server: owner === 'operator' ? expect.arrayContaining([expect.any(String)]) : [],
  });
  expect(String(found.status)).toContain(condition.incident?.summary ?? summary);
  // That no worker reports is what `act` says, in exportd's own words.
  const messages = fault.withoutWorker === true ? [] : (found.server as string[]);
  expect(await publicFaults(messages)).toEqual({
    fields: owner === 'operator' ? ['opened_at', 'type'] : [],
    named: [],
  });
  if (owner === 'operator') {
    const [message = ''] = found.server as string[];
    expect(summary).toContain(message.replace(/\.$/, ''));
    if (!fault.withoutWorker)
      expect(faultsIn(await json(`${monitoring.worker}/readyz`))).toEqual(found.server);
  }
  return condition;
}

/** Does what the owner does, and sends what the condition offers. @returns the responses */
async function cure(
  fault: Fault,
  id: string,
  { actions }: Pick<Condition, 'actions'>,
): Promise<ApiResponse[]> {
  await fault.repair?.(id);
  const responses: ApiResponse[] = [];
  for (const { path, body } of actions.filter(({ method }) => method === 'POST'))
    responses.push(await stack.call('POST', path.replace(`/api/projects/${stack.projectId}`, ''), body));
  return responses;
}

/** Goes through one fault from its cause to its cure. @returns how long it took */
async function drill(fault: Fault, id: string, before: number): Promise<string> {
  const told = receiverOf(fault);
  const all = [receiver, operator];
  const made = performance.now();
  let condition = await conditionOf(id);
  await waitFor(
    async () => {
      condition = await conditionOf(id);
      return condition.cause === fault.cause;
    },
    () => `${fault.name} is ${fault.cause}; it is ${JSON.stringify(condition)}`,
  );
  const named = performance.now() - made;
  // Runs end and intervals come to wait while the surfaces are read, and metrics are read every ten seconds.
  let difference: unknown;
  const agreed = await waitFor(
    async () => {
      try {
        return await expectAgreement(fault, id);
      } catch (error) {
        difference = error;
        return undefined;
      }
    },
    () => `all surfaces agree: ${String(difference)}`,
    namedWithinMs,
  );
  const agreedAfter = performance.now() - made;
  await expectInConsole(id);
  let ringing: readonly string[] = [];
  await waitFor(
    async () => {
      ringing = await prometheus.alerts();
      return ringing.join() === fault.alert;
    },
    () => `${fault.alert} rings alone; ringing are ${ringing.join(', ')}`,
    curedWithinMs,
  );
  const message = await waitFor(
    async () => {
      // Holes are told once they have lasted.
      await stack.pool.query(
        `update exportd.notified_conditions set seen_at = seen_at - interval '15 minutes' where cause = 'holes'`,
      );
      return told.messages.slice(before).find(({ type }) => type === fault.told.begin);
    },
    () =>
      `${fault.told.begin} is sent; sent are ${all.map(({ messages }) => messages.map(({ type }) => type).join(', ')).join('; ')}`,
  );
  const toldAfter = performance.now() - made;
  expect(message.signed).toBe(true);

  const began = performance.now();
  const responses = await cure(fault, id, agreed);
  expect(responses.filter(({ status }) => status !== 200)).toEqual([]);
  await waitFor(
    async () => {
      condition = await conditionOf(id);
      // Nothing is owed any more.
      return condition.cause === 'ok' && /^Exported (?!.*Owed)/.test(condition.summary);
    },
    () => `${fault.name} is cured; it is ${JSON.stringify(condition)}`,
  );
  const ok = performance.now() - began;
  const last = await waitFor(
    () => told.messages.slice(before).find(({ type }) => type === fault.told.end),
    () =>
      `${fault.told.end} is sent; sent are ${all.map(({ messages }) => messages.map(({ type }) => type).join(', ')).join('; ')}`,
  );
  expect(incidentIn(last.data)).toBe(incidentIn(message.data));
  const incident = String(incidentIn(last.data));
  expect(incident).toHaveLength(36);
  // An outage has it in the condition and in the log of its begin and its end.
  expect(agreed.incident?.id ?? incident).toBe(incident);
  await waitFor(
    () => agreed.incident === null || loggedOf(incident) >= 2,
    `the logs have the begin and the end of ${incident}`,
  );
  let heard = chatsOf(incident);
  if (fault.told.by === 'project')
    await waitFor(
      () => {
        heard = chatsOf(incident);
        return heard.slack >= 2 && heard.pagerDuty[0] === 'trigger' && heard.pagerDuty.at(-1) === 'resolve';
      },
      () => `Slack and PagerDuty are told; they heard ${JSON.stringify(heard)}`,
    );
  let status = await command('status');
  await waitFor(
    async () => {
      status = await command('status');
      return status.code === 0;
    },
    () => `status is ok; it is ${status.stdout}`,
  );
  const recovered = performance.now() - began;
  expect(await diagnose()).toContain('none needs attention');
  await waitFor(
    async () => {
      ringing = await prometheus.alerts();
      return ringing.length === 0;
    },
    () => `nothing rings after ${fault.name}; ringing are ${ringing.join(', ')}`,
    curedWithinMs,
  );
  expect(faultsIn(await json(`${monitoring.server}/readyz`))).toEqual([]);
  await opened.page.goto(`/exports/${id}`);
  await opened.page
    .getByText(/^Exported .* Not exported: /)
    .first()
    .waitFor();
  const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
  const figures = `incident ${incident}, ${agreed.cause}, ${fault.alert}; named after ${seconds(named)}, by all surfaces after ${seconds(agreedAfter)}, told after ${seconds(toldAfter)}; ok ${seconds(ok)} and all recovered ${seconds(recovered)} after the cure`;
  expect([named <= namedWithinMs, recovered <= curedWithinMs]).toEqual([true, true]);
  return figures;
}

describe('the on-call drill', () => {
  it.each(faults)('$name: every surface names it within a minute, and its cure within two', async (fault) => {
    let id: string | undefined;
    const before = receiverOf(fault).messages.length;
    try {
      id = await fault.make();
      const figures = await drill(fault, id, before);
      report(`${fault.name}: ${figures}`);
      expect(figures).toContain('after the cure');
    } catch (error) {
      report(`${fault.name}: ${String(error)}`);
      // The next one is made without it.
      if (id !== undefined) await cure(fault, id, await conditionOf(id)).catch(() => undefined);
      throw error;
    }
  });

  it('has told the end of all that it has told, and nothing rings after it', async () => {
    const { rows } = await stack.pool.query(
      'select batch_export_id from exportd.incidents union all select batch_export_id from exportd.notified_conditions where told',
    );
    expect(rows).toEqual([]);
    const ends = Map.groupBy(
      chats.received
        .filter(({ path }) => path.startsWith('/pagerduty'))
        .map(({ body }) => JSON.parse(body) as { event_action: string; dedup_key: string }),
      ({ dedup_key }) => dedup_key,
    );
    for (const events of ends.values()) expect(events.at(-1)?.event_action).toBe('resolve');
    expect(await prometheus.alerts()).toEqual([]);
  });
});
