import pg from 'pg';
import { describe, expect, it } from '@jest/globals';
import { shareByProject, type SharedConnections } from '../../src/source/project_shares.ts';
import { SourceBusy, type SourceConnections } from '../../src/source/source_connection.ts';

/** A read that its test ends. */
interface OpenRead {
  readonly name: string;
  readonly end: () => void;
}

/** Shared connections whose reads stay open, with a wait that never times out by default. */
function openReads(
  size: number,
  waitMs = 3_600_000,
): {
  readonly open: OpenRead[];
  readonly read: (teamId: number, name: string, signal?: AbortSignal) => Promise<string>;
} {
  const open: OpenRead[] = [];
  const connections: SourceConnections = {
    statementTimeoutMs: 1_000,
    pool: new pg.Pool(),
    read: (...[, , work]) => work({} as Parameters<typeof work>[0]),
    close: () => Promise.resolve(),
  };
  const shared: SharedConnections = shareByProject(connections, size, waitMs);
  return {
    open,
    read: (teamId, name, signal) =>
      shared.forProject(teamId).read({}, signal, async () => {
        const { promise, resolve } = Promise.withResolvers<undefined>();
        open.push({ name, end: () => resolve(undefined) });
        await promise;
        return name;
      }),
  };
}

/** Lets all reads start that need not wait. */
const settle = () => new Promise((resolve) => setImmediate(resolve));
const namesOf = (reads: readonly OpenRead[]) => reads.map(({ name }) => name);

describe('connections shared by project', () => {
  it.each([
    { size: 12, share: 4 },
    { size: 4, share: 1 },
    { size: 3, share: 1 },
    { size: 1, share: 1 },
  ])('allow a project $share of $size', async ({ size, share }) => {
    const { open, read } = openReads(size);
    const reads = Array.from({ length: size + 1 }, (_, n) => read(1, `first ${n}`));
    await settle();
    expect(open).toHaveLength(share);
    const other = read(2, 'second');
    await settle();
    expect(namesOf(open)).toContain('second');
    while (open.length > 0) {
      open.shift()?.end();
      await settle();
    }
    await Promise.all([...reads, other]);
  });

  it('pass to the reads of a project in order of arrival', async () => {
    const { open, read } = openReads(3);
    const reads = ['a', 'b', 'c'].map((name) => read(1, name));
    const started: string[] = [];
    for (const [n] of reads.entries()) {
      await settle();
      expect(open).toHaveLength(n + 1);
      started.push(open[n]?.name ?? '');
      open[n]?.end();
    }
    expect(started).toEqual(['a', 'b', 'c']);
    expect(await Promise.all(reads)).toEqual(['a', 'b', 'c']);
  });

  it('reject a read that waits too long, and serve the next one', async () => {
    const { open, read } = openReads(3, 10);
    const first = read(1, 'first');
    await expect(read(1, 'late')).rejects.toThrow(SourceBusy);
    open[0]?.end();
    await first;
    const next = read(1, 'next');
    await settle();
    expect(namesOf(open)).toEqual(['first', 'next']);
    open[1]?.end();
    expect(await next).toBe('next');
  });

  it('end the wait of a read that is aborted with the reason of its signal', async () => {
    const { open, read } = openReads(3);
    const first = read(1, 'first');
    const abort = new AbortController();
    const waiting = read(1, 'waiting', abort.signal);
    const reason = new Error('no longer needed');
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    open[0]?.end();
    await first;
    expect(namesOf(open)).toEqual(['first']);
  });
});
