import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { fromSetUp } from '../setup/environment.ts';
import { expectNothingLeft, runBench } from './run_bench.ts';

const folder = () => join(fromSetUp('EXPORTD_TEST_FOLDER'), 'bench');

describe('exportd bench', () => {
  it('measures DuckDB and warm workers repeatedly, and writes a profile of each worker', async () => {
    const profiles = join(folder(), 'profiles');
    const command = await runBench(
      folder(),
      ...['--events', '3000'],
      ...['--formats', 'JSONLines', '--warm', '--repeat', '2', '--profile', profiles],
    );
    expect(command.stdout).toMatch(
      /^export +seconds +min–max .*\nfloor .*\n(psql|shell) .*\nDuckDB [\d.]+ Parquet\+zstd .*\nexportd JSONLines .*\n$/,
    );
    expect(command.stderr).toMatch(/exportd JSONLines \(2 of 2\): [\d.]+ s/);
    for (const repeat of ['1', '2'])
      expect(readdirSync(join(profiles, `JSONLines-${repeat}`))).toContainEqual(
        expect.stringMatching(/\.cpuprofile$/),
      );
    await expectNothingLeft(command, folder());
  });
});
