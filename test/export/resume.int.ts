import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { continueRun } from '../../src/decisions/continue_run.ts';
import { DestinationError } from '../../src/destination/destination.ts';
import { isWarning, readLog } from '../decisions/read_log.ts';
import { casesOf } from '../setup/effort.ts';
import { type Interruptions, withCrash, withInterruptions } from './crash_injection.ts';
import { createExportHarness, type ExportHarness } from './export_harness.ts';

describe('resuming', () => {
  let harness: ExportHarness;
  const eventCount = 3_000;
  beforeAll(async () => {
    harness = await createExportHarness();
    await harness.insertEvents(eventCount);
  });
  afterAll(() => harness.close());

  const sum = (values: Iterable<number>): number => [...values].reduce((total, value) => total + value, 0);

  /** Bytes of the planned parts that arrived, up to the first one that did not. */
  function contiguousBytes(sent: ReadonlyMap<number, number>, arrived: ReadonlySet<number>): number {
    const numbers = [...sent.keys()].toSorted((one, other) => one - other);
    const missing = numbers.findIndex((number) => !arrived.has(number));
    return sum((missing === -1 ? numbers : numbers.slice(0, missing)).map((number) => sent.get(number) ?? 0));
  }

  /** Publishes, and checks that nothing is left of other attempts. */
  async function publishAndVerify(runId: string, batchExportId: string, generation = 1): Promise<void> {
    await harness.publishAndVerify(runId, { generation, rows: eventCount });
    expect(await harness.reader.keysWithPrefix(batchExportId)).toHaveLength(2);
    expect(await harness.reader.openUploads()).toEqual([]);
  }

  describe('an attempt after a crashed one', () => {
    const crashPoints: [string, keyof Interruptions, number][] = [
      ['that created its upload', 'planPart', 1],
      ['that planned a part', 'putPart', 2],
      ['that sent a part', 'arrived', 2],
      ['that sent all parts', 'complete', 1],
      ['that completed the object', 'completed', 1],
    ];
    const crashes = crashPoints.flatMap((moment) =>
      [null, 'gzip'].map((compression) => [...moment, compression] as const),
    );
    /** Every point once, with and without compression in turns. */
    const usualCrashes = crashes.filter((_, index) => index % 4 === 0 || index % 4 === 3);
    it.each(casesOf(usualCrashes, crashes))(
      '%s sends only what is missing (%s %i, %s)',
      async (_, at, occurrence, compression) => {
        const { run_id, batchExportId } = await harness.createRun({ config: { compression } });
        const first = withCrash(harness, at, occurrence);
        await expect(harness.attempt(first).exportInterval({ run_id })).rejects.toThrow();
        const second = withInterruptions(harness, {});
        const exported = await harness.attempt(second).exportInterval({ run_id });
        expect(exported).toMatchObject({ generation: 1, rows: eventCount, source_rows: eventCount });
        // A part in flight at the crash may have arrived although the first attempt never received the response.
        const arrived = new Set([...first.arrived, ...second.listed]);
        expect(sum(second.sent.values())).toBe(exported.bytes - contiguousBytes(first.sent, arrived));
        expect([...second.sent.keys()].filter((number) => first.sent.has(number))).toEqual([]);
        await publishAndVerify(run_id, batchExportId);
      },
    );

    it('ends with one file after three crashes', async () => {
      const { run_id, batchExportId } = await harness.createRun();
      // No crash after a part has arrived: all others may have arrived too by then, which leaves no call to crash at.
      const crashPoints: [keyof Interruptions, number][] = [
        ['planPart', 2],
        ['planPart', 1],
        ['putPart', 1],
      ];
      for (const [at, occurrence] of crashPoints)
        await expect(
          harness.attempt(withCrash(harness, at, occurrence)).exportInterval({ run_id }),
        ).rejects.toThrow();
      const last = withInterruptions(harness, {});
      await harness.attempt(last).exportInterval({ run_id });
      // Each attempt that plans a part starts its numbers at the next thousand.
      expect(Math.min(...last.sent.keys())).toBe(2_000);
      await publishAndVerify(run_id, batchExportId);
    });

    it('starts over if the upload was aborted meanwhile', async () => {
      const { run_id, batchExportId } = await harness.createRun();
      await expect(
        harness.attempt(withCrash(harness, 'arrived')).exportInterval({ run_id }),
      ).rejects.toThrow();
      const { ranges, spec: spec } = await harness.recorder.read(run_id);
      const upload = ranges[0]?.upload;
      const destination = await harness.openDestination(spec, () => undefined);
      await destination.abortUpload(upload?.key ?? '', upload?.upload_id ?? '', new AbortController().signal);
      destination.close();
      await harness.attempt().exportInterval({ run_id });
      await publishAndVerify(run_id, batchExportId, 2);
    });

    it('starts over, and logs why, if it must not list parts', async () => {
      const { run_id, batchExportId } = await harness.createRun();
      await expect(
        harness.attempt(withCrash(harness, 'arrived')).exportInterval({ run_id }),
      ).rejects.toThrow();
      const accessDenied = new DestinationError('AccessDenied', 'Denied.', { transient: false });
      const { openDestination } = withInterruptions(harness, {
        listParts: () => Promise.reject(accessDenied),
      });
      await harness.attempt({ openDestination }).exportInterval({ run_id });
      await publishAndVerify(run_id, batchExportId, 2);
      expect(await readLog(harness.database.pool, { run_id }, isWarning)).toEqual([
        expect.stringContaining('list'),
      ]);
    });
  });

  describe('a zombie', () => {
    /** Starts an attempt that stalls at one of its calls until it is woken. */
    function startZombie(runId: string, at: keyof Interruptions) {
      const reached = Promise.withResolvers<undefined>();
      const woken = Promise.withResolvers<undefined>();
      const stall = async (): Promise<void> => {
        reached.resolve(undefined);
        await woken.promise;
      };
      const ended = harness
        .attempt(withInterruptions(harness, { [at]: stall }))
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
      'changes nothing if it wakes (%s) after another attempt has finished',
      async (at) => {
        const { run_id, batchExportId } = await harness.createRun();
        const zombie = startZombie(run_id, at);
        await zombie.reached;
        await harness.attempt().exportInterval({ run_id });
        const before = [await harness.recorder.read(run_id), await harness.reader.eventTypes(run_id)];
        // The journal rejects its next step; the bucket rejects parts that were planned before.
        const hasPlanned = at === 'putPart' || at === 'arrived';
        expect(['GenerationSuperseded', ...(hasPlanned ? ['NoSuchUpload'] : [])]).toContain(
          await zombie.wake(),
        );
        expect([await harness.recorder.read(run_id), await harness.reader.eventTypes(run_id)]).toEqual(
          before,
        );
        await publishAndVerify(run_id, batchExportId);
      },
    );

    it('that completes its object while another attempt resumes has completed it for both', async () => {
      const { run_id, batchExportId } = await harness.createRun();
      const zombie = startZombie(run_id, 'complete');
      await zombie.reached;
      // It passed the journal's check before the other attempt started, so every part of its file exists.
      const other = withInterruptions(harness, {
        listParts: async () => {
          expect(await zombie.wake()).toBe('GenerationSuperseded');
        },
      });
      await harness.attempt(other).exportInterval({ run_id });
      expect(other.sent.size).toBe(0);
      await publishAndVerify(run_id, batchExportId);
    });

    it('cannot complete an object once another attempt has inspected the upload', async () => {
      const { run_id, batchExportId } = await harness.createRun();
      const zombie = startZombie(run_id, 'putPart');
      await zombie.reached;
      const completions: string[] = [];
      const other = withInterruptions(harness, {
        // The zombie sends all planned parts, and would complete the upload, after the other found a part missing.
        putPart: async () => {
          completions.push(await zombie.wake());
        },
      });
      await harness.attempt(other).exportInterval({ run_id });
      expect(completions[0]).toBe('GenerationSuperseded');
      await publishAndVerify(run_id, batchExportId);
    });

    it('does not abort what another attempt resumes, even after a permanent error', async () => {
      const { run_id, batchExportId } = await harness.createRun();
      const resume = Promise.withResolvers<undefined>();
      const reached = Promise.withResolvers<undefined>();
      const accessDenied = new DestinationError('AccessDenied', 'Denied.', { transient: false });
      const intercepted = withInterruptions(harness, {
        planPart: async (partNumber) => {
          if (partNumber === 1) return;
          reached.resolve(undefined);
          await resume.promise;
          throw accessDenied;
        },
      });
      const zombie = harness.attempt(intercepted).exportInterval({ run_id });
      zombie.catch(() => undefined);
      await reached.promise;
      const other = withInterruptions(harness, {
        complete: async () => {
          resume.resolve(undefined);
          await expect(zombie).rejects.toMatchObject({ type: 'AccessDenied' });
        },
      });
      await harness.attempt(other).exportInterval({ run_id });
      await publishAndVerify(run_id, batchExportId);
    });
  });

  describe('an export that continues as new', () => {
    it('resumes the same file and keeps counting', async () => {
      const { run_id, batchExportId } = await harness.createRun();
      const settings = { ...harness.settings, EXPORTD_PARTS_PER_EXECUTION: 2 };
      const first = withInterruptions(harness, {});
      const outcome = await harness.attempt({ ...first, settings }).exportInterval({ run_id });
      expect(outcome).toMatchObject({ finished: false, generation: 1 });
      expect(first.sent.size).toBe(2);
      const next = await continueRun(harness.journal, run_id);
      expect(await harness.recorder.read(next.run_id)).toMatchObject({
        status: 'Starting',
        generation: 1,
        spec: { continues_run_id: run_id, batch_export_id: batchExportId },
      });
      await expect(harness.attempt().exportInterval({ run_id })).rejects.toMatchObject({ type: 'RunEnded' });
      const second = withInterruptions(harness, {});
      const exported = await harness.attempt(second).exportInterval(next);
      expect(exported).toMatchObject({ finished: true, rows: eventCount });
      expect(sum(second.sent.values())).toBe(exported.bytes - outcome.bytes);
      await publishAndVerify(next.run_id, batchExportId);
    });
  });
});
