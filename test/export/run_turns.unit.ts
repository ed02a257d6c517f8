import { describe, expect, it } from '@jest/globals';
import { createRunTurns, type RunOrder } from '../../src/export/run_turns.ts';

const { signal } = new AbortController();
const [scheduled, byHand, backfilled] = [2, 3, 4];
/** A run of project 1 whose interval ends at an hour. */
const run = (hour: number, priority = scheduled): RunOrder => ({
  project: '1',
  priority,
  data_interval_end: new Date(Date.UTC(2026, 10, 1, hour)).toISOString(),
});

/** The one turn of a worker, which is taken. */
async function openTurn(waitMs = 60_000) {
  const turns = createRunTurns({ atOnce: 1, waitMs });
  const end = await turns.wait(run(0), signal);
  const begun: RunOrder[] = [];
  return {
    turns,
    begun,
    end: () => end?.(),
    /** Waits for the turn of a run, and ends it. */
    ask: async (one: RunOrder) => {
      const endOfTurn = await turns.wait(one, signal);
      if (endOfTurn) begun.push(one);
      endOfTurn?.();
    },
  };
}

describe('the turns of runs', () => {
  it('go to schedules before backfills, and then to older intervals, whenever they asked', async () => {
    const { ask, end, begun } = await openTurn();
    const order = [
      ...[run(2), run(5), run(7)],
      ...[run(1, byHand), { project: '1', priority: backfilled }, run(1, backfilled), run(3, backfilled)],
    ];
    const asked = [5, 0, 3, 6, 2, 1, 4].flatMap((index) => order[index] ?? []).map(ask);
    end();
    await Promise.all(asked);
    expect(begun).toEqual(order);
  });

  it('take a run that was started by hand for one between schedules and backfills', async () => {
    const { ask, end, begun } = await openTurn();
    const order = [run(9), { project: '1' }, run(1, backfilled)];
    const asked = [2, 1, 0].flatMap((index) => order[index] ?? []).map(ask);
    end();
    await Promise.all(asked);
    expect(begun).toEqual(order);
  });

  it('go to a run that waited in vain before newer ones that asked meanwhile', async () => {
    const { turns, ask, end, begun } = await openTurn(1);
    expect(await turns.wait(run(1), signal)).toBeUndefined();
    // No time passes until the turn is free.
    const asked = [run(2), run(1), run(3)].map(ask);
    end();
    await Promise.all(asked);
    expect(begun).toEqual([run(1), run(2), run(3)]);
  });

  it('are taken while runs wait in vain', async () => {
    let now = 0;
    const turns = createRunTurns({ atOnce: 1, waitMs: 1 }, () => now);
    const end = await turns.wait(run(0), signal);
    expect(turns.areTaken()).toBe(false);
    expect(await turns.wait(run(1), signal)).toBeUndefined();
    now = 9_000;
    expect(turns.areTaken()).toBe(true);
    end?.();
    (await turns.wait(run(1), signal))?.();
    now = 10_000;
    expect(turns.areTaken()).toBe(false);
  });

  it('end with the reason of the signal', async () => {
    const { turns } = await openTurn();
    const reason = new Error('cancelled');
    await expect(turns.wait(run(1), AbortSignal.abort(reason))).rejects.toBe(reason);
  });
});
