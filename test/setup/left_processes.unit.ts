import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { endProcessesOf, processesOf } from './left_processes.ts';

const root = join(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'exportd-left-processes-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** How a test file ended, and what Jest printed of it. */
interface FileResult {
  readonly status: string;
  readonly message: string;
}

/** Runs test files with the environment of exportd's tests, one after the other in one process. */
async function runFiles(contents: readonly string[]): Promise<readonly FileResult[]> {
  for (const [index, content] of contents.entries()) writeFileSync(join(folder, `${index}.case.ts`), content);
  const config = {
    rootDir: folder,
    testEnvironment: join(root, '.config/jest_environment.cjs'),
    testRunner: join(root, '.config/jest_runner.cjs'),
    testMatch: ['<rootDir>/*.case.ts'],
    transform: { '\\.ts$': join(root, '.config/jest_transformer.cjs') },
  };
  const jest = join(root, 'node_modules/jest/bin/jest.js');
  const options = ['--runInBand', '--json', '--config', JSON.stringify(config)];
  // It exits with 1 where a file fails.
  const { stdout } = await promisify(execFile)(process.execPath, [jest, ...options], { cwd: root }).catch(
    (error: unknown) => error as { stdout: string },
  );
  const { testResults } = JSON.parse(stdout) as {
    testResults: readonly (FileResult & { readonly name: string })[];
  };
  return testResults.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

const imports = "import { spawn } from 'node:child_process'; import { beforeAll, it } from '@jest/globals';";
const idle = `spawn(process.execPath, ['--eval', 'setInterval(() => undefined, 1_000)'], { env: { RUN: '${folder}' } })`;

describe('a test file that leaves a process', () => {
  const failing = [
    ['after its tests', `${imports} it('passes', () => void ${idle});`],
    [
      'because beforeAll throws',
      `${imports} beforeAll(() => { ${idle}; throw new Error('no'); }); it('runs', () => {});`,
    ],
  ] as const;
  let results: readonly FileResult[];
  beforeAll(async () => {
    const passing = `${imports} it('passes', () => void ${idle}.kill());`;
    results = await runFiles([...failing.map(([, content]) => content), passing]);
  });

  it.each(failing.map(([when], index) => [when, index] as const))(
    'fails with its command: %s',
    (_when, index) => {
      expect(results[index]).toMatchObject({
        status: 'failed',
        message: expect.stringContaining('The file has left processes, which were killed:'),
      });
      expect(results[index]?.message).toContain('setInterval');
    },
  );

  it('and has told it to end passes', () => {
    expect(results.at(-1)).toMatchObject({ status: 'passed' });
  });

  it('has it ended', () => {
    expect(processesOf(folder)).toEqual([]);
  });
});

describe('what a run of Jest has left', () => {
  it('is found by its folder in the environment of a process, and ended', async () => {
    const child = spawn(process.execPath, ['--eval', 'setInterval(() => undefined, 1_000)'], {
      env: { PATH: process.env.PATH, RUN: join(folder, 'run') },
    });
    const exited = once(child, 'exit');
    expect(processesOf(join(folder, 'run')).map(({ pid }) => pid)).toEqual([child.pid]);
    expect(await endProcessesOf(join(folder, 'other'))).toEqual([]);
    expect(child.exitCode).toBeNull();
    expect(await endProcessesOf(join(folder, 'run'), 0)).toEqual([
      { pid: child.pid, command: expect.stringContaining('setInterval') },
    ]);
    await exited;
    expect(child.signalCode).toBe('SIGKILL');
  });
});
