import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { waitFor } from '../setup/wait_for.ts';
import { outageAfterFirstPart } from './outage.ts';
import { expectEveryRowOnce, rows, startBehindProxy, startExport } from './run_behind_proxy.ts';
import type { S3Proxy } from './s3_proxy.ts';
import type { Stack } from './stack.ts';

describe('an outage of the S3 server beyond the timeout of a run', () => {
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

  it('ends it FailedRetryable, and the next run resumes without sending confirmed parts again', async () => {
    const parts = () => proxy.requests.filter(({ operation }) => operation === 'UploadPart');
    const arrived = () => parts().filter(({ status, ended }) => ended && status === 200);
    const outage = outageAfterFirstPart(proxy);
    const { id } = await startExport(stack, 'outlasted');
    await waitFor(outage.isActive, 'a part has arrived and the outage has started');
    const [interrupted] = await stack.runs(id);
    const failed = await stack.waitForRun(id, interrupted?.id ?? '', 'FailedRetryable');
    expect(failed.latest_error).toMatch(/^(S3Unreachable|DestinationUnavailable|BudgetExceeded): /);
    const confirmed = new Set(arrived().map(({ digest }) => digest));
    const sentBefore = parts().length;
    outage.end();
    await waitFor(async () => (await stack.runs(id))[0]?.status === 'Completed', 'a later run is Completed');
    const [completed] = await stack.runs(id);
    expect(completed).toMatchObject({ records_completed: rows, generation: failed.generation });
    const sentAfterOutage = parts().slice(sentBefore);
    expect(sentAfterOutage.length).toBeGreaterThan(0);
    expect(sentAfterOutage.filter(({ digest }) => confirmed.has(digest))).toEqual([]);
    await expectEveryRowOnce(stack, id, 'outlasted');
  });
});
