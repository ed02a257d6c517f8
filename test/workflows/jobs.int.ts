import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { bounds } from '../../src/config/bounds.ts';
import { findJob, handlerOf, type JobKind, requestJob, withdrawJob } from '../../src/jobs/jobs.ts';
import { createJobClient } from '../../src/temporal/clients/job_client.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createControlPlaneHarness, type ControlPlaneHarness } from '../temporal/control_plane_harness.ts';

type Parameters = { readonly hangs: boolean };
const kindOf = (
  name: string,
  more: Partial<JobKind<Parameters, object>> = {},
): JobKind<Parameters, object> => ({
  name,
  workflowType: 'batchExportTableDescription',
  summary: 'A job',
  limit: { kinds: [name], max: 1 },
  attempts: 1,
  timeoutMs: () => 600_000,
  isKept: false,
  ...more,
});
const unlimited = kindOf('unlimited', { limit: null });
const limited = kindOf('limited');
const short = kindOf('short', { timeoutMs: () => 1_000, isKept: true });

/** Jobs that hang now, by project, and those whose signal was aborted. They end once `release` is called. */
let hanging: number[] = [];
let aborted = 0;
let released: Promise<unknown>;
let release: () => void;

const handlers = [unlimited, limited].map((kind) =>
  handlerOf(kind, async ({ team_id, parameters }, signal) => {
    if (!parameters.hangs) return {};
    hanging.push(team_id);
    const onAbort = () => (aborted += 1);
    signal.addEventListener('abort', onAbort);
    await released;
    signal.throwIfAborted();
    // The signal is aborted too when the activity has ended, which may be in the next test.
    signal.removeEventListener('abort', onAbort);
    return {};
  }),
);
handlers.push(
  handlerOf(short, async (_, signal) => {
    const { promise, reject } = Promise.withResolvers<never>();
    signal.addEventListener('abort', () => reject(signal.reason));
    return promise;
  }),
);

let stack: ControlPlaneHarness;
beforeAll(async () => {
  stack = await createControlPlaneHarness({}, undefined, undefined, handlers);
  await stack.startWorker();
});
beforeEach(() => {
  const pending = Promise.withResolvers<unknown>();
  [hanging, aborted, released] = [[], 0, pending.promise];
  release = () => pending.resolve(undefined);
});
afterAll(() => stack.close());

/** Stores a job. @returns its id, or null while its project has too many */
const request = (
  kind: JobKind<Parameters, object>,
  {
    hangs = true,
    team_id = 1,
    target = randomUUID(),
  }: Partial<Parameters> & { team_id?: number; target?: string },
) => requestJob(stack, kind, { team_id, user_id: 1, target, parameters: { hangs } });

/** Stores a job and starts its workflow. */
async function start(...[kind, request_]: globalThis.Parameters<typeof request>): Promise<string> {
  const id = (await request(kind, request_)) ?? '';
  const { team_id = 1 } = request_;
  await createJobClient(stack.client, stack.pool, stack.settings).start(kind, { id, team_id });
  return id;
}
const rows = async (id: string) =>
  (await stack.pool.query<{ withdrawn: boolean }>('select withdrawn from exportd.jobs where id = $1', [id]))
    .rows;
const statusOf = async (id: string) => (await findJob(stack.pool, unlimited, id))?.status;

describe('a job', () => {
  it('waits for no more than a share of the jobs of another project that hang', async () => {
    const many = await Promise.all(Array.from({ length: 30 }, () => start(unlimited, { team_id: 2 })));
    const share = Array.from({ length: bounds.jobsOfProject.max }, () => 2);
    await waitFor(() => hanging.length === share.length, 'the share of the project');
    for (const team_id of [1, 3, 4]) {
      const id = await start(unlimited, { hangs: false, team_id });
      await waitFor(async () => (await statusOf(id)) === 'completed', 'the job of another project');
    }
    expect(hanging).toEqual(share);
    release();
    for (const id of many) await waitFor(async () => (await statusOf(id)) === 'completed', 'all of them');
  });

  it('ends when it is withdrawn, and counts until then', async () => {
    const id = await start(limited, {});
    await waitFor(() => hanging.length === 1, 'the job is done');
    await withdrawJob(stack.pool, id);
    await waitFor(() => aborted === 1, 'its work is aborted');
    expect(await findJob(stack.pool, limited, id)).toBeUndefined();
    expect(await rows(id)).toEqual([{ withdrawn: true }]);
    expect(await request(limited, {})).toBeNull();
    release();
    await waitFor(async () => (await rows(id)).length === 0, 'its activity ends');
    const next = (await request(limited, {})) ?? '';
    expect(next).not.toBe('');
    // No worker has begun it.
    await withdrawJob(stack.pool, next);
    expect(await rows(next)).toEqual([]);
    expect(await request(limited, { team_id: 5 })).not.toBeNull();
  });

  it('ends when its export is deleted', async () => {
    const target = await stack.createExport();
    const id = await start(unlimited, { target });
    await waitFor(() => hanging.length === 1, 'the job is done');
    await stack.command(target, 'delete');
    await waitFor(() => aborted === 1, 'its work is aborted');
    release();
    await waitFor(async () => (await rows(id)).length === 0, 'its activity ends');
  });

  it('ends after its time, which is its answer', async () => {
    const id = await start(short, {});
    await waitFor(async () => (await findJob(stack.pool, short, id))?.status !== 'pending', 'it ends');
    expect(await findJob(stack.pool, short, id)).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/^No answer within 1 s/),
    });
  });
});
