import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { programPath } from '../setup/programs.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../..');

it('docker-compose accepts docker-compose.yml', async () => {
  const compose = await programPath('docker-compose');
  await expect(
    run(compose, ['--profile', 'monitoring', 'config', '--quiet'], { cwd: root }),
  ).resolves.toMatchObject({ stdout: '' });
});
