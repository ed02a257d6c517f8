import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { backfillDecider } from '../../src/domain/backfill.ts';
import { batchExportDecider } from '../../src/domain/batch_export.ts';
import type { Decider, DomainEvent, Recorded } from '../../src/domain/event.ts';
import { runDecider } from '../../src/domain/run.ts';
import type { Pool } from '../../src/journal/database.ts';
import { rebuild } from '../../src/projections/registry.ts';
import { readStream } from '../journal/read_stream.ts';
import { ledgerViolations } from './ledger_violations.ts';
import { projectionContents } from './projection_contents.ts';
import { anyLifecycle, startLifecycle } from './random_lifecycle.ts';
import { randomCases } from '../setup/effort.ts';

/** Folds a stream with its decider alone; returns the state as JSON. */
async function foldOf<State, Event extends DomainEvent>(
  pool: Pool,
  decider: Decider<State, Event>,
  id: string,
): Promise<unknown> {
  const events = (await readStream(pool, decider.streamType, id)) as unknown as Recorded<Event>[];
  const state = events.reduce<State>((folded, event) => decider.evolve(folded, event), decider.initialState);
  return JSON.parse(JSON.stringify(state));
}

/** Folds a stream of any type. */
function foldByType(pool: Pool, type: string, id: string): Promise<unknown> {
  if (type === 'run') return foldOf(pool, runDecider, id);
  return type === 'backfill' ? foldOf(pool, backfillDecider, id) : foldOf(pool, batchExportDecider, id);
}

describe('the projections after random commands and runs', () => {
  it('equal a fold of the journal, and so do the states that decisions depend on', async () => {
    await fc.assert(
      fc.asyncProperty(anyLifecycle, async (actions) => {
        const lifecycle = await startLifecycle();
        const { pool } = lifecycle.database;
        try {
          for (const { run } of actions) await run(lifecycle);
          expect(await ledgerViolations(pool)).toEqual({});
          const before = await projectionContents(pool);
          await rebuild(pool);
          expect(await projectionContents(pool)).toBe(before);
          const { rows } = await pool.query<{ type: string; id: string; version: number; state: unknown }>(
            `select stream_type as type, stream_id as id, stream.version, state from exportd.stream_states
             join exportd.journal_streams stream using (stream_type, stream_id)
             where stream_states.version = stream.version`,
          );
          const { rows: streams } = await pool.query('select from exportd.journal_streams where version > 0');
          expect(rows).toHaveLength(streams.length);
          for (const { type, id, state } of rows) expect(state).toEqual(await foldByType(pool, type, id));
        } finally {
          await lifecycle.database.drop();
        }
      }),
      { numRuns: randomCases(2) },
    );
  });
});
