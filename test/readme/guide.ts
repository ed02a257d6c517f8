import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { CommandResult } from '../cli/command_line.ts';

const root = join(import.meta.dirname, '../..');

/** A block of a page that is run, and the block of text after it, which it has to print. */
export interface GuideStep {
  readonly language: 'sh' | 'sql';
  readonly code: string;
  readonly expected: string | undefined;
}

/** The steps of a page, in order. */
export function stepsOf(page: string): GuideStep[] {
  const content = readFileSync(join(root, page), 'utf8');
  const blocks = [...content.matchAll(/^ *```(\w+)\n(.*?)^ *```$/gms)];
  return blocks.flatMap(([, language, code = ''], index) => {
    if (language !== 'sh' && language !== 'sql') return [];
    const [, following, output] = blocks[index + 1] ?? [];
    return [{ language, code, expected: following === 'text' ? output : undefined }];
  });
}

/** What a page says that a command prints: these lines in this order, maybe with others between them, where `…` is any text. */
export function printedPattern(expected: string): RegExp {
  const lines = expected.split('\n').filter((line) => line !== '');
  const patterns = lines.map((line) =>
    line
      .split('…')
      .map((part) =>
        part
          .trim()
          .split(/\s+/)
          .map((word) => word.replaceAll(/[^\w\s]/g, String.raw`\$&`))
          .join(String.raw`\s+`),
      )
      .join('[^\n]*'),
  );
  return new RegExp(patterns.join('[^]*\n[^\n]*?'));
}

/** A program that a page calls, run by the test. */
export type GuideProgram = (
  environment: Readonly<Record<string, string>>,
  ...args: readonly string[]
) => Promise<CommandResult>;

/** Bash, which runs the steps of pages one after another and keeps their variables. */
export interface GuideShell {
  /** @returns what it printed, standard error included. @throws Error with it when a command fails */
  run(commands: string): Promise<string>;
  close(): Promise<void>;
}

/**
 * Starts a shell whose programs are functions of the test: a process of exportd would spend a second of CPU on its start.
 * @param variables what the shell begins with
 */
export async function openGuideShell(
  programs: Readonly<Record<string, GuideProgram>>,
  variables: Readonly<Record<string, string>>,
): Promise<GuideShell> {
  const folder = mkdtempSync(join(tmpdir(), 'exportd-guide-'));
  const [bin, work, socket] = [join(folder, 'bin'), join(folder, 'work'), join(folder, 'socket')];
  for (const path of [bin, work]) mkdirSync(path);
  for (const name of Object.keys(programs))
    writeFileSync(
      join(bin, name),
      `#!/bin/sh
call=$(mktemp -d '${folder}/call-XXXXXX')
printf '%s\\0' ${name} "$@" > "$call/arguments"
env -0 > "$call/environment"
curl -sS --fail --unix-socket '${socket}' "http://localhost$call" || exit 126
cat "$call/stderr" >&2
cat "$call/stdout"
exit "$(cat "$call/code")"
`,
      { mode: 0o755 },
    );
  const server = await listen(socket, async (call) => {
    const [name = '', ...args] = entriesOf(join(call, 'arguments'));
    const environment = Object.fromEntries(
      entriesOf(join(call, 'environment')).map((entry) => {
        const [variable = '', ...value] = entry.split('=');
        return [variable, value.join('=')];
      }),
    );
    const result = await programs[name]?.(environment, ...args);
    for (const [file, content] of Object.entries(result ?? {}))
      writeFileSync(join(call, file), String(content));
  });
  const [stored, script] = [join(folder, 'variables'), join(folder, 'script')];
  writeFileSync(stored, '');
  return {
    run: async (commands) => {
      // A page sets variables that later pages use.
      writeFileSync(
        script,
        `set -euo pipefail -a\nsource '${stored}'\n${commands}\nexport -p > '${stored}'\n`,
      );
      const child = spawn('bash', [script], {
        cwd: work,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...variables, PATH: [bin, process.env.PATH].join(delimiter), HOME: work },
      });
      const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
      const output = (await Promise.all([text(child.stdout), text(child.stderr)])).join('');
      const code = await ended;
      if (code !== 0) throw new Error(`Exit code ${String(code)} of:\n${commands}\n${output}`);
      return output;
    },
    close: async () => {
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The entries of a file, each of which ends with NUL. */
const entriesOf = (path: string): string[] => readFileSync(path, 'utf8').split('\0').slice(0, -1);

async function listen(socket: string, answer: (path: string) => Promise<void>): Promise<Server> {
  const server = createServer((request, response) => {
    answer(request.url ?? '').then(
      () => response.end(),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return server;
}
