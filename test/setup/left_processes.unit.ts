import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from '@jest/globals';
import { endProcessesOf, processesOf } from './left_processes.ts';

const root = join(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'exportd-left-processes-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a test file with the environment of exportd's tests. @returns what Jest printed and its exit code */
async function runFile(content: string): Promise<{ output: string; code: number }> {
  writeFileSync(join(folder, 'file.case.ts'), content);
  const config = {
    rootDir: folder,
    testEnvironment: join(root, '.config/jest_environment.cjs'),
    testMatch: ['<rootDir>/*.case.ts'],
    transform: { '\\.ts$': join(root, '.config/jest_transformer.cjs') },
  };
  const jest = join(root, 'node_modules/jest/bin/jest.js');
  const result = promisify(execFile)(process.execPath, [jest, '--config', JSON.stringify(config)], {
    cwd: root,
  });
  return result.then(
    ({ stderr }) => ({ output: stderr, code: 0 }),
    (error: unknown) => {
      const { stderr, code } = error as { stderr: string; code: number };
      return { output: stderr, code };
    },
  );
}

const imports = "import { spawn } from 'node:child_process'; import { beforeAll, it } from '@jest/globals';";
const idle = `spawn(process.execPath, ['--eval', 'setInterval(() => undefined, 1_000)'], { env: { RUN: '${folder}' } })`;

const isIdle = (): boolean => processesOf(folder).length > 0;

describe('a test file that leaves a process', () => {
  it.each([
    ['after its tests', `${imports} it('passes', () => void ${idle});`],
    [
      'because beforeAll throws',
      `${imports} beforeAll(() => { ${idle}; throw new Error('no'); }); it('runs', () => {});`,
    ],
  ])('fails with its command, and the process is ended: %s', async (_when, content) => {
    const { output, code } = await runFile(content);
    expect(code).toBe(1);
    expect(output).toContain('The file has left processes, which were killed:');
    expect(output).toContain('setInterval');
    expect(isIdle()).toBe(false);
  });

  it('and has told it to end passes', async () => {
    const { output, code } = await runFile(`${imports} it('passes', () => void ${idle}.kill());`);
    expect({ output, code }).toMatchObject({ code: 0 });
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
