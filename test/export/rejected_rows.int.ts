import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { OpenDestination } from '../../src/destination/open_destination.ts';
import { createStage, interval, type Stage } from './export_harness.ts';
import { createReader } from './reader.ts';

let stage: Stage;
let read: ReturnType<typeof createReader>;
const good = 500;
const bad = 7;
beforeAll(async () => {
  stage = await createStage();
  read = createReader(stage.database.pool, stage.bucket, interval);
  await stage.insertEvents(good);
  await stage.database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
     select 1, gen_random_uuid(), 'bad', 'd', '{"big": 12345678901234567890}', 'infinity',
       $1::timestamptz + make_interval(mins => n) from generate_series(1, $2) n`,
    [interval.start, bad],
  );
});
afterAll(() => stage.close());

const config = { on_bad_row: 'reject' };

/** The next way to the bucket dies when it is to write the file of the rejected rows, before or after it is there. */
const dying =
  (moment: 'before' | 'after'): OpenDestination =>
  async (subject, onFault) => {
    const real = await stage.openDestination(subject, onFault);
    return {
      ...real,
      putObject: async (...input) => {
        if (moment === 'after') await real.putObject(...input);
        throw new Error('killed');
      },
    };
  };

async function expectRejected(runId: string, generation: number): Promise<void> {
  const { manifest_key } = await stage.attempt().publishManifest({ run_id: runId });
  const manifest = await read.manifestAt(manifest_key);
  expect(manifest).toMatchObject({ generation, rows: good, rejected: bad, source_rows: good + bad });
  const lines = (await read.textOf(manifest.rejected_file?.key ?? '')).trimEnd().split('\n');
  expect(lines).toHaveLength(bad);
  for (const line of lines) {
    expect(JSON.parse(line)).toMatchObject({ column: 'timestamp', row: { timestamp: 'infinity' } });
    expect(line).toContain('12345678901234567890');
  }
}

describe('rows that the format cannot hold', () => {
  it('end the run with the name of row and column', async () => {
    const { run_id } = await stage.openRun();
    await expect(stage.attempt().exportInterval({ run_id })).rejects.toMatchObject({
      type: 'UnencodableRow',
      nonRetryable: true,
      message: expect.stringContaining('timestamp'),
    });
  });

  it('are counted and kept beside the files when they are rejected', async () => {
    const { run_id } = await stage.openRun({ config });
    await stage.attempt().exportInterval({ run_id });
    await expectRejected(run_id, 1);
  });

  it.each(['before', 'after'] as const)(
    'are there once after a kill %s their file is written',
    async (moment) => {
      const { run_id } = await stage.openRun({ config });
      const openDestination = dying(moment);
      await expect(stage.attempt({ openDestination }).exportInterval({ run_id })).rejects.toThrow();
      await stage.attempt().exportInterval({ run_id });
      await expectRejected(run_id, 1);
    },
  );

  it('are exported anew when others than before are found after a kill', async () => {
    const { run_id } = await stage.openRun({ config });
    const openDestination = dying('after');
    await expect(stage.attempt({ openDestination }).exportInterval({ run_id })).rejects.toThrow();
    await stage.database.pool.query(`update events set elements_chain = 'changed' where event = 'bad'`);
    await stage.attempt().exportInterval({ run_id });
    await expectRejected(run_id, 2);
  });

  it('end the run when they are too many', async () => {
    const { run_id } = await stage.openRun({ config });
    const settings = { ...stage.settings, EXPORTD_MAX_REJECTED_ROWS: bad - 1 };
    await expect(stage.attempt({ settings }).exportInterval({ run_id })).rejects.toMatchObject({
      type: 'TooManyRejectedRows',
      nonRetryable: true,
    });
  });
});
