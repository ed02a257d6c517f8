import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { programPath } from '../setup/programs.ts';

const run = promisify(execFile);

it('Prometheus accepts its configuration, with the rules that it names', async () => {
  const promtool = await programPath('promtool');
  const file = join(import.meta.dirname, '../../.config/prometheus.yaml');
  const { stdout } = await run(promtool, ['check', 'config', file]);
  expect(stdout).toContain('1 rule files found');
});
