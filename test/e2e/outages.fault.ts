import { ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createBucket } from '../setup/bucket.ts';
import { lastingWorkers } from '../setup/patience.ts';
import { until } from '../setup/until.ts';
import { insertLargeEvents } from './large_rows.ts';
import { outageAfterFirstPart } from './outage.ts';
import { holdRequests } from './request_hold.ts';
import { keysUnder } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import type { S3OperationName } from './s3_operation.ts';
import { createS3Proxy, type Instead, type ProxiedRequest, type S3Proxy } from './s3_proxy.ts';
import { startStack, type ShownRun, type Stack } from './stack.ts';
import { verified } from './verified.ts';

/** Two parts and a bit. */
const rows = 2_600;

async function startBehindProxy(
  name: string,
  settings: Record<string, string>,
): Promise<{ stack: Stack; proxy: S3Proxy }> {
  const bucket = await createBucket();
  const proxy = await createS3Proxy(bucket.endpoint);
  const stack = await startStack(
    name,
    { ...lastingWorkers, ...settings },
    { bucket: { ...bucket, endpoint: proxy.endpoint } },
  );
  await insertLargeEvents(stack, hourAgo(3), rows);
  return { stack, proxy };
}

const start = async (stack: Stack, prefix: string): Promise<{ id: string; run: ShownRun }> =>
  backfill(stack, await stack.createExport({}, { prefix }));

async function backfill(stack: Stack, id: string): Promise<{ id: string; run: ShownRun }> {
  await stack.call('POST', `/batch_exports/${id}/backfill/`, {
    start_at: hourAgo(3).toISOString(),
    end_at: hourAgo(2).toISOString(),
  });
  const [run] = await stack.runs(id);
  if (!run) throw new Error('The backfill opened no run.');
  return { id, run };
}

async function expectEveryRowOnce(stack: Stack, id: string, prefix: string): Promise<void> {
  const report = await verified(stack, id);
  expect(report.findings).toEqual([]);
  expect(report.totals).toMatchObject({ manifests: 1, files: 1, rows });
  const { Uploads = [] } = await stack.bucket.client.send(
    new ListMultipartUploadsCommand({ Bucket: stack.bucket.bucket, Prefix: `${prefix}/` }),
  );
  expect(Uploads).toEqual([]);
  expect(await keysUnder(stack.bucket, `${prefix}/`)).toHaveLength(2);
}

const errorAnswer = (status: number, code: string): Instead => ({
  status,
  body: `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>Not now.</Message></Error>`,
});

describe('a fault of the S3 server', () => {
  let stack: Stack;
  let proxy: S3Proxy;
  /** Each disturbs what is below a prefix of its own, so that all of them can wait at once. */
  const outcomes = new Map<string, Promise<void>>();
  beforeAll(async () => {
    ({ stack, proxy } = await startBehindProxy('outages', {
      // No shorter than a server stalls that has all those exports to serve at once.
      EXPORTD_S3_REQUEST_TIMEOUT: '5s',
      EXPORTD_EXPORT_SLOTS: String(passing.size),
    }));
    for (const [name, fault] of passing) outcomes.set(name, fault());
    await Promise.allSettled(outcomes.values());
  });
  afterAll(async () => {
    await stack.stop();
    await proxy.close();
  });

  /** Disturbs the first requests of each kind below a prefix, and counts the disturbances. */
  function disturb(
    prefix: string,
    when: 'before' | 'answered',
    instead: (request: ProxiedRequest, before: number) => Instead | undefined,
  ): () => number {
    const seen = new Map<string, number>();
    let disturbed = 0;
    proxy.intervene({
      [when]: (request: ProxiedRequest) => {
        if (!request.key.startsWith(`${prefix}/`)) return undefined;
        const kind = `${request.operation} ${request.partNumber ?? ''}`;
        const before = seen.get(kind) ?? 0;
        seen.set(kind, before + 1);
        const answer = instead(request, before);
        if (answer) disturbed += 1;
        return answer;
      },
    });
    return () => disturbed;
  }

  async function expectCompleted(prefix: string): Promise<void> {
    const { id, run } = await start(stack, prefix);
    const completed = await stack.runIn(id, run.id, 'Completed');
    expect(completed).toMatchObject({ records_completed: rows, generation: 1 });
    await expectEveryRowOnce(stack, id, prefix);
  }

  async function breaksConnections(): Promise<void> {
    let down = true;
    const disturbed = disturb('broken', 'before', () => (down ? 'broken' : undefined));
    const { id, run } = await start(stack, 'broken');
    await until(() => disturbed() >= 5, 'the outage is felt');
    down = false;
    await stack.runIn(id, run.id, 'Completed');
    await expectEveryRowOnce(stack, id, 'broken');
  }

  async function doesNotAnswer(): Promise<void> {
    const silence = holdRequests(proxy, 'anything below silent', {
      when: 'answered',
      matches: ({ key }) => key.startsWith('silent/'),
    });
    const { id, run } = await start(stack, 'silent');
    await until(() => silence.held.length >= 3, 'the silence is felt');
    silence.release('broken');
    await stack.runIn(id, run.id, 'Completed');
    await expectEveryRowOnce(stack, id, 'silent');
  }

  async function answersInBursts(): Promise<void> {
    const disturbed = disturb('bursts', 'before', (_, before) =>
      before >= 3
        ? undefined
        : before === 1
          ? errorAnswer(500, 'InternalError')
          : errorAnswer(503, 'SlowDown'),
    );
    await expectCompleted('bursts');
    // Three times each: the upload, its parts, its completion, the manifest.
    expect(disturbed()).toBeGreaterThanOrEqual(3 * 6);
  }

  /** How often the first three requests of a kind were disturbed, of a run that is Completed all the same. */
  async function disturbances(
    prefix: string,
    when: 'before' | 'answered',
    operation: S3OperationName,
    instead: Instead,
  ): Promise<number> {
    const disturbed = disturb(prefix, when, (request, before) =>
      request.operation === operation && before < 3 ? instead : undefined,
    );
    await expectCompleted(prefix);
    return disturbed();
  }

  const internalError = errorAnswer(200, 'InternalError');

  async function failsCompletions(): Promise<void> {
    const times = await disturbances('error-in-200', 'before', 'CompleteMultipartUpload', internalError);
    expect(times).toBe(3);
  }

  async function deniesCompletions(): Promise<void> {
    const times = await disturbances('made', 'answered', 'CompleteMultipartUpload', internalError);
    expect(times).toBeGreaterThanOrEqual(1);
  }

  const losesReplies = (operation: S3OperationName) => async (): Promise<void> => {
    const times = await disturbances(`lost-${operation}`, 'answered', operation, 'broken');
    expect(times).toBeGreaterThanOrEqual(1);
  };

  const passing = new Map([
    ['a server that breaks every connection for a while', breaksConnections],
    ['a server that takes requests and does not answer', doesNotAnswer],
    ['bursts of 500 and 503', answersInBursts],
    ['a completion that is answered 200 with an error in it', failsCompletions],
    ['a completion that is made and answered 200 with an error in it', deniesCompletions],
    ...(['CreateMultipartUpload', 'UploadPart', 'CompleteMultipartUpload', 'PutObject'] as const).map(
      (operation) => [`lost replies to ${operation}`, losesReplies(operation)] as const,
    ),
  ]);

  it.each([...passing.keys()])('that passes within the budget of a run is no loss: %s', async (name) => {
    await expect(outcomes.get(name)).resolves.toBeUndefined();
  });

  it('that does not pass fails a run at once, with words a user understands', async () => {
    const id = await stack.createExport({}, { aws_secret_access_key: 'not-the-secret' });
    const { run } = await backfill(stack, id);
    const { latest_error } = await stack.runIn(id, run.id, 'Failed');
    expect(latest_error).toMatch(/^SignatureDoesNotMatch: .*aws_secret_access_key/);
    expect(latest_error).not.toContain('not-the-secret');
  });
});

describe('an outage of the S3 server that outlasts the budget of a run', () => {
  let stack: Stack;
  let proxy: S3Proxy;
  beforeAll(async () => {
    ({ stack, proxy } = await startBehindProxy('long-outage', {
      EXPORTD_ACTIVITY_SCHEDULE_TO_CLOSE_TIMEOUT: '8s',
      EXPORTD_RUN_RETRY_INITIAL: '500ms',
    }));
  });
  afterAll(async () => {
    await stack.stop();
    await proxy.close();
  });

  it('ends it FailedRetryable, and the next run goes on without what had arrived', async () => {
    const parts = () => proxy.requests.filter(({ operation }) => operation === 'UploadPart');
    const arrived = () => parts().filter(({ status, ended }) => ended && status === 200);
    const outage = outageAfterFirstPart(proxy);
    const { id } = await start(stack, 'outlasted');
    await until(outage.isThere, 'a part has arrived, and the server is gone');
    const [struck] = await stack.runs(id);
    const failed = await stack.runIn(id, struck?.id ?? '', 'FailedRetryable');
    expect(failed.latest_error).toMatch(/^(S3Unreachable|BudgetExceeded): /);
    const confirmed = new Set(arrived().map(({ digest }) => digest));
    const sentBefore = parts().length;
    outage.end();
    await until(async () => (await stack.runs(id))[0]?.status === 'Completed', 'a later run is Completed');
    const [completed] = await stack.runs(id);
    expect(completed).toMatchObject({ records_completed: rows, generation: failed.generation });
    const again = parts().slice(sentBefore);
    expect(again.length).toBeGreaterThan(0);
    expect(again.filter(({ digest }) => confirmed.has(digest))).toEqual([]);
    await expectEveryRowOnce(stack, id, 'outlasted');
  });
});
