import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { createSecrets } from '../../src/cli/commands/secrets.ts';
import { programPath } from '../setup/programs.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../..');

it.each(['docker-compose', 'docker-compose-2'] as const)('%s accepts docker-compose.yml', async (program) => {
  const compose = await programPath(program);
  await expect(
    run(compose, ['--profile', 'monitoring', 'config', '--quiet'], {
      cwd: root,
      env: { ...process.env, ...createSecrets(new Date()) },
    }),
  ).resolves.toMatchObject({ stdout: '' });
  // Without the secrets it names the first missing one.
  await expect(run(compose, ['config', '--quiet'], { cwd: root })).rejects.toThrow('secrets create');
});
