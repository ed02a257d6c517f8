import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { continueRun } from '../../src/decisions/continue_run.ts';
import { DestinationError } from '../../src/destination/destination.ts';
import { createStage, interval, type Stage } from './export_harness.ts';
import { interrupted, killed, type Interruptions } from './crash_injection.ts';
import { createReader } from './reader.ts';

let stage: Stage;
let read: ReturnType<typeof createReader>;
const eventCount = 12_000;
beforeAll(async () => {
  stage = await createStage();
  read = createReader(stage.database.pool, stage.bucket, interval);
  await stage.insertEvents(eventCount);
});
afterAll(() => stage.close());

const sum = (values: Iterable<number>): number => [...values].reduce((total, value) => total + value, 0);

/** Bytes of the planned parts that had arrived in a row, before the first that had not. */
function bytesInARow(sent: ReadonlyMap<number, number>, arrived: ReadonlySet<number>): number {
  const numbers = [...sent.keys()].toSorted((one, other) => one - other);
  const missing = numbers.findIndex((number) => !arrived.has(number));
  return sum((missing === -1 ? numbers : numbers.slice(0, missing)).map((number) => sent.get(number) ?? 0));
}

/** Publishes and checks that a reader finds exactly the rows of the source. */
async function expectWhole(runId: string, batchExportId: string, generation = 1): Promise<void> {
  const { manifest_key } = await stage.attempt().publishManifest({ run_id: runId });
  const manifest = await read.manifestAt(manifest_key);
  expect(manifest).toMatchObject({ generation, rows: eventCount, run_id: runId });
  expect(await read.uuidsBehind(manifest)).toEqual(await read.sourceUuids());
  expect(await read.keysUnder(batchExportId)).toHaveLength(2);
  expect(await read.openUploads()).toEqual([]);
}

describe('an attempt after one that was killed', () => {
  const moments: [string, keyof Interruptions, number][] = [
    ['when its upload was created', 'planPart', 1],
    ['when a part was planned', 'putPart', 2],
    ['when a part was sent', 'arrived', 2],
    ['when all parts were sent', 'complete', 1],
    ['when the object was made', 'completed', 1],
  ];
  it.each(
    moments.flatMap((moment) => [null, 'gzip'].map((compression) => [...moment, compression] as const)),
  )('%s sends what is missing and nothing else (%s %i, %s)', async (_, at, which, compression) => {
    const { run_id, batchExportId } = await stage.openRun({ config: { compression } });
    const first = killed(stage, at, which);
    await expect(stage.attempt(first).exportInterval({ run_id })).rejects.toThrow();
    const second = interrupted(stage, {});
    const exported = await stage.attempt(second).exportInterval({ run_id });
    expect(exported).toMatchObject({ generation: 1, rows: eventCount, source_rows: eventCount });
    // A part under way when the first was killed may have arrived although nobody heard of it.
    const arrived = new Set([...first.arrived, ...second.listed]);
    expect(sum(second.sent.values())).toBe(exported.bytes - bytesInARow(first.sent, arrived));
    expect([...second.sent.keys()].filter((number) => first.sent.has(number))).toEqual([]);
    await expectWhole(run_id, batchExportId);
  });

  it('and another one, and another, still ends with one file', async () => {
    const { run_id, batchExportId } = await stage.openRun();
    // None after a part has arrived: the others may have as well by then, and nothing would be left to be killed at.
    const moments: [keyof Interruptions, number][] = [
      ['planPart', 2],
      ['planPart', 1],
      ['putPart', 1],
    ];
    for (const [at, which] of moments)
      await expect(stage.attempt(killed(stage, at, which)).exportInterval({ run_id })).rejects.toThrow();
    const last = interrupted(stage, {});
    await stage.attempt(last).exportInterval({ run_id });
    // Each attempt that planned a part begins its numbers at the next thousand.
    expect(Math.min(...last.sent.keys())).toBe(2_000);
    await expectWhole(run_id, batchExportId);
  });

  it('starts anew when the upload was thrown away meanwhile', async () => {
    const { run_id, batchExportId } = await stage.openRun();
    await expect(stage.attempt(killed(stage, 'arrived')).exportInterval({ run_id })).rejects.toThrow();
    const { ranges, spec: subject } = await stage.recorder.read(run_id);
    const upload = ranges[0]?.upload;
    const destination = await stage.openDestination(subject, () => undefined);
    await destination.abortUpload(upload?.key ?? '', upload?.upload_id ?? '', new AbortController().signal);
    destination.close();
    await stage.attempt().exportInterval({ run_id });
    await expectWhole(run_id, batchExportId, 2);
  });

  it('starts anew, and says why, when it may not list parts', async () => {
    const { run_id, batchExportId } = await stage.openRun();
    await expect(stage.attempt(killed(stage, 'arrived')).exportInterval({ run_id })).rejects.toThrow();
    const denied = new DestinationError('AccessDenied', 'Denied.', { transient: false });
    const { openDestination } = interrupted(stage, { listParts: () => Promise.reject(denied) });
    await stage.attempt({ openDestination }).exportInterval({ run_id });
    await expectWhole(run_id, batchExportId, 2);
    const { rows } = await stage.database.pool.query(
      `select message from exportd.log_lines where run_id = $1 and level = 'WARNING'`,
      [run_id],
    );
    expect(rows).toEqual([{ message: expect.stringContaining('list') }]);
  });
});

describe('an attempt that is only believed dead', () => {
  /** An attempt that stops at one of its calls until it is woken. */
  function stalled(runId: string, at: keyof Interruptions) {
    const reached = Promise.withResolvers<undefined>();
    const woken = Promise.withResolvers<undefined>();
    const stall = async (): Promise<void> => {
      reached.resolve(undefined);
      await woken.promise;
    };
    const ended = stage
      .attempt(interrupted(stage, { [at]: stall }))
      .exportInterval({ run_id: runId })
      .then(
        () => 'finished',
        (error: unknown) => (error as { type: string }).type,
      );
    return {
      reached: reached.promise,
      wake: () => {
        woken.resolve(undefined);
        return ended;
      },
    };
  }

  it.each(['planPart', 'putPart', 'arrived', 'complete', 'completed'] as const)(
    'changes nothing when it wakes (%s) after another has finished',
    async (at) => {
      const { run_id, batchExportId } = await stage.openRun();
      const zombie = stalled(run_id, at);
      await zombie.reached;
      await stage.attempt().exportInterval({ run_id });
      const before = [await stage.recorder.read(run_id), await read.eventTypes(run_id)];
      // The journal refuses whatever comes next, or the bucket parts that had been planned before.
      const hasPlanned = at === 'putPart' || at === 'arrived';
      expect(['GenerationSuperseded', ...(hasPlanned ? ['NoSuchUpload'] : [])]).toContain(
        await zombie.wake(),
      );
      expect([await stage.recorder.read(run_id), await read.eventTypes(run_id)]).toEqual(before);
      await expectWhole(run_id, batchExportId);
    },
  );

  it('and makes its object while another takes over, has made that one’s object too', async () => {
    const { run_id, batchExportId } = await stage.openRun();
    const zombie = stalled(run_id, 'complete');
    await zombie.reached;
    // It passed the journal's check before the other began, so every part of its file is there to be found.
    const other = interrupted(stage, {
      listParts: async () => {
        expect(await zombie.wake()).toBe('GenerationSuperseded');
      },
    });
    await stage.attempt(other).exportInterval({ run_id });
    expect(other.sent.size).toBe(0);
    await expectWhole(run_id, batchExportId);
  });

  it('cannot make an object once another has begun to look', async () => {
    const { run_id, batchExportId } = await stage.openRun();
    const zombie = stalled(run_id, 'putPart');
    await zombie.reached;
    const completions: string[] = [];
    const other = interrupted(stage, {
      // The zombie sends everything it has planned, and would complete, after the other has seen a part missing.
      putPart: async () => {
        completions.push(await zombie.wake());
      },
    });
    await stage.attempt(other).exportInterval({ run_id });
    expect(completions[0]).toBe('GenerationSuperseded');
    await expectWhole(run_id, batchExportId);
  });

  it('does not throw away what another goes on with, though its own error is for good', async () => {
    const { run_id, batchExportId } = await stage.openRun();
    const goOn = Promise.withResolvers<undefined>();
    const reached = Promise.withResolvers<undefined>();
    const refused = new DestinationError('AccessDenied', 'Denied.', { transient: false });
    const way = interrupted(stage, {
      planPart: async (partNumber) => {
        if (partNumber === 1) return;
        reached.resolve(undefined);
        await goOn.promise;
        throw refused;
      },
    });
    const zombie = stage.attempt(way).exportInterval({ run_id });
    zombie.catch(() => undefined);
    await reached.promise;
    const other = interrupted(stage, {
      complete: async () => {
        goOn.resolve(undefined);
        await expect(zombie).rejects.toMatchObject({ type: 'AccessDenied' });
      },
    });
    await stage.attempt(other).exportInterval({ run_id });
    await expectWhole(run_id, batchExportId);
  });
});

describe('an export handed over to a fresh run', () => {
  it('goes on in the same file, and counts on', async () => {
    const { run_id, batchExportId } = await stage.openRun();
    const settings = { ...stage.settings, EXPORTD_PARTS_PER_EXECUTION: 2 };
    const first = interrupted(stage, {});
    const outcome = await stage.attempt({ ...first, settings }).exportInterval({ run_id });
    expect(outcome).toMatchObject({ finished: false, generation: 1 });
    expect(first.sent.size).toBe(2);
    const next = await continueRun(stage.journal, run_id);
    expect(await stage.recorder.read(next.run_id)).toMatchObject({
      status: 'Starting',
      generation: 1,
      spec: { continues_run_id: run_id, batch_export_id: batchExportId },
    });
    await expect(stage.attempt().exportInterval({ run_id })).rejects.toMatchObject({ type: 'RunEnded' });
    const second = interrupted(stage, {});
    const exported = await stage.attempt(second).exportInterval(next);
    expect(exported).toMatchObject({ finished: true, rows: eventCount });
    expect(sum(second.sent.values())).toBe(exported.bytes - outcome.bytes);
    await expectWhole(next.run_id, batchExportId);
  });
});
