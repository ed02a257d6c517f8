import { beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createKnownColumns } from '../../src/source/known_columns.ts';

const failing = (code: string): pg.DatabaseError =>
  Object.assign(new pg.DatabaseError('It fails.', 0, 'error'), { code });
const missingColumn = failing('42703');

describe('the columns of relations', () => {
  let columns: string[];
  let reads: number;
  let clock: number;
  const create = () =>
    createKnownColumns(
      () => {
        reads += 1;
        return Promise.resolve([...columns]);
      },
      () => clock,
    );
  beforeEach(() => {
    columns = ['uuid'];
    reads = 0;
    clock = 0;
  });

  it('are read once a minute', async () => {
    const known = create();
    for (const time of [0, 1, 59_999]) {
      clock = time;
      expect(await known.of('events', undefined)).toEqual(['uuid']);
    }
    expect(reads).toBe(1);
    clock = 60_000;
    columns = ['uuid', 'person_properties'];
    expect(await known.of('events', undefined)).toEqual(columns);
    expect(reads).toBe(2);
  });

  /** Reads with a statement that PostgreSQL accepts only of the columns that there are. */
  const readWith = (known: ReturnType<typeof create>, error = missingColumn) => {
    const tried: string[] = [];
    const read = known.reading('events', undefined, async () => {
      const used = await known.of('events', undefined);
      tried.push(used.join());
      if (used.join() !== columns.join()) throw error;
      return used.join();
    });
    return read.then(
      (result) => ({ result, tried }),
      (thrown: unknown) => ({ thrown, tried }),
    );
  };

  it('that have changed are read again when a statement of them fails, which is tried once more', async () => {
    const known = create();
    await known.of('events', undefined);
    columns = ['identifier'];
    expect(await readWith(known)).toEqual({ result: 'identifier', tried: ['uuid', 'identifier'] });
    expect(await readWith(known)).toEqual({ result: 'identifier', tried: ['identifier'] });
    expect(reads).toBe(2);
  });

  it('are not read again after a failure of the server', async () => {
    const known = create();
    await known.of('events', undefined);
    columns = ['identifier'];
    for (const code of ['57014', '08006', '53300']) {
      const error = failing(code);
      expect(await readWith(known, error)).toEqual({ thrown: error, tried: ['uuid'] });
    }
    expect(reads).toBe(1);
  });

  it('that have not changed are no reason to try again', async () => {
    const known = create();
    await known.of('events', undefined);
    let tries = 0;
    await expect(
      known.reading('events', undefined, () => {
        tries += 1;
        return Promise.reject(missingColumn);
      }),
    ).rejects.toBe(missingColumn);
    expect(tries).toBe(1);
  });

  it('of another model stay', async () => {
    const known = create();
    await known.of('persons', undefined);
    await known.of('events', undefined);
    columns = ['identifier'];
    await readWith(known);
    expect(await known.of('persons', undefined)).toEqual(['uuid']);
  });
});
