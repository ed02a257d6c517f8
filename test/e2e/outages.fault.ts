import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { casesOf } from '../setup/effort.ts';
import { waitFor } from '../setup/wait_for.ts';
import { blockRequests } from './request_gate.ts';
import { backfill, expectEveryRowOnce, rows, startBehindProxy, startExport } from './run_behind_proxy.ts';
import type { S3OperationName } from './s3_operation.ts';
import type { InjectedOutcome, ProxiedRequest, S3Proxy } from './s3_proxy.ts';
import type { Stack } from './stack.ts';

const errorResponse = (status: number, code: string): InjectedOutcome => ({
  status,
  body: `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>Not now.</Message></Error>`,
});

describe('an error of the S3 server', () => {
  let stack: Stack;
  let proxy: S3Proxy;
  /** The outcome of each case. Each uses a separate prefix, so all run concurrently. */
  const outcomes = new Map<string, Promise<void>>();
  beforeAll(async () => {
    ({ stack, proxy } = await startBehindProxy('outages', {
      // Longer than a server with all these exports stalls.
      EXPORTD_S3_REQUEST_TIMEOUT: '5s',
      EXPORTD_EXPORT_SLOTS: String(temporaryFaults.size),
    }));
    for (const [name, fault] of temporaryFaults) outcomes.set(name, fault());
    await Promise.allSettled(outcomes.values());
  });
  afterAll(async () => {
    await stack.stop();
    await proxy.close();
  });

  /** Injects outcomes into requests below a prefix; `before` is the number of earlier requests of the same operation and part. @returns the number of injected outcomes. */
  function injectFaults(
    prefix: string,
    when: 'before' | 'after',
    outcome: (request: ProxiedRequest, before: number) => InjectedOutcome | undefined,
  ): () => number {
    const seen = new Map<string, number>();
    let faultCount = 0;
    proxy.intercept({
      [when]: (request: ProxiedRequest) => {
        if (!request.key.startsWith(`${prefix}/`)) return undefined;
        const kind = `${request.operation} ${request.partNumber ?? ''}`;
        const before = seen.get(kind) ?? 0;
        seen.set(kind, before + 1);
        const response = outcome(request, before);
        if (response) faultCount += 1;
        return response;
      },
    });
    return () => faultCount;
  }

  async function expectCompleted(prefix: string): Promise<void> {
    const { id, run } = await startExport(stack, prefix);
    const completed = await stack.waitForRun(id, run.id, 'Completed');
    expect(completed).toMatchObject({ records_completed: rows, generation: 1 });
    await expectEveryRowOnce(stack, id, prefix);
  }

  async function breaksConnections(): Promise<void> {
    let down = true;
    const faultCount = injectFaults('broken', 'before', () => (down ? 'broken' : undefined));
    const { id, run } = await startExport(stack, 'broken');
    await waitFor(() => faultCount() >= 5, 'five requests were broken');
    down = false;
    await stack.waitForRun(id, run.id, 'Completed');
    await expectEveryRowOnce(stack, id, 'broken');
  }

  async function neverResponds(): Promise<void> {
    const gate = blockRequests(proxy, 'any request below silent', {
      when: 'after',
      matches: ({ key }) => key.startsWith('silent/'),
    });
    const { id, run } = await startExport(stack, 'silent');
    await waitFor(() => gate.waiting.length >= 3, 'three requests got no response');
    gate.open('broken');
    await stack.waitForRun(id, run.id, 'Completed');
    await expectEveryRowOnce(stack, id, 'silent');
  }

  async function failsInBursts(): Promise<void> {
    const faultCount = injectFaults('bursts', 'before', (_, before) =>
      before >= 3
        ? undefined
        : before === 1
          ? errorResponse(500, 'InternalError')
          : errorResponse(503, 'SlowDown'),
    );
    await expectCompleted('bursts');
    // Three times each for the upload, its parts, its completion and the manifest.
    expect(faultCount()).toBeGreaterThanOrEqual(3 * 6);
  }

  /** Injects the outcome into the first three requests of the operation, and expects the run to complete. @returns the number of injected outcomes. */
  async function faultsInCompletedRun(
    prefix: string,
    when: 'before' | 'after',
    operation: S3OperationName,
    outcome: InjectedOutcome,
  ): Promise<number> {
    const faultCount = injectFaults(prefix, when, (request, before) =>
      request.operation === operation && before < 3 ? outcome : undefined,
    );
    await expectCompleted(prefix);
    return faultCount();
  }

  const internalError = errorResponse(200, 'InternalError');

  async function failsBeforeCompletion(): Promise<void> {
    const times = await faultsInCompletedRun(
      'error-in-200',
      'before',
      'CompleteMultipartUpload',
      internalError,
    );
    expect(times).toBe(3);
  }

  async function failsAfterCompletion(): Promise<void> {
    const times = await faultsInCompletedRun('made', 'after', 'CompleteMultipartUpload', internalError);
    expect(times).toBeGreaterThanOrEqual(1);
  }

  const losesResponses = (operation: S3OperationName) => async (): Promise<void> => {
    const times = await faultsInCompletedRun(`lost-${operation}`, 'after', operation, 'broken');
    expect(times).toBeGreaterThanOrEqual(1);
  };

  const allFaults: readonly (readonly [string, () => Promise<void>])[] = [
    ['a server that breaks every connection for some time', breaksConnections],
    ['a server that accepts requests and does not respond', neverResponds],
    ['bursts of 500 and 503', failsInBursts],
    ['a completion that fails with an error in a 200 response', failsBeforeCompletion],
    ['a completion that succeeds with an error in its 200 response', failsAfterCompletion],
    ...(['CreateMultipartUpload', 'UploadPart', 'CompleteMultipartUpload', 'PutObject'] as const).map(
      (operation) => [`lost responses to ${operation}`, losesResponses(operation)] as const,
    ),
  ];
  /** One of each kind. */
  const usualFaults = allFaults.filter(([name]) => !/ 200 |CreateMultipartUpload|PutObject/.test(name));
  const temporaryFaults = new Map(casesOf(usualFaults, allFaults));

  it.each([...temporaryFaults.keys()])('that is temporary loses no rows: %s', async (name) => {
    await expect(outcomes.get(name)).resolves.toBeUndefined();
  });

  it('that is permanent fails a run immediately with a clear message', async () => {
    const id = await stack.createExport({}, { aws_secret_access_key: 'not-the-secret' });
    const { run } = await backfill(stack, id);
    const { latest_error } = await stack.waitForRun(id, run.id, 'Failed');
    expect(latest_error).toMatch(/^SignatureDoesNotMatch: .*aws_secret_access_key/);
    expect(latest_error).not.toContain('not-the-secret');
  });
});
