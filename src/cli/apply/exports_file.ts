import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isAlias, LineCounter, parseDocument, visit, type Document, type ScalarTag } from 'yaml';
import { defaultDefinition } from '../../http/batch_exports/changes.ts';
import { CliError } from '../cli_error.ts';
import type { JsonObject } from '../commands/service_command.ts';

/** An export as a file declares it. */
export interface DeclaredExport {
  readonly name: string;
  /** Its fields as in the API, with secrets in plain text: never print them. */
  readonly fields: JsonObject;
}

/** The fields that a file can declare. */
const declarableFields = ['name', ...Object.keys(defaultDefinition), 'paused', 'destination'];

/**
 * Reads exports from a YAML file: `exports: [{name, model, …, destination: {type, config}}]`. `!env NAME` is the value of an
 * environment variable, `!file PATH` the text of a file, relative to this one. `-` reads stdin.
 * @throws CliError with every problem and its line
 */
export function readExportsFile(
  path: string,
  environment: Readonly<Record<string, string | undefined>>,
): DeclaredExport[] {
  const text = readText(path);
  return parseExports(text, {
    name: path,
    folder: path === '-' ? process.cwd() : dirname(path),
    environment,
  });
}

function readText(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw new CliError(`${path} cannot be read (${code}).`);
  }
}

/** Where a text comes from, and what its tags refer to. */
interface TextOrigin {
  readonly name: string;
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Parses the text of a file. @throws CliError with every problem and its line */
export function parseExports(text: string, { name, folder, environment }: TextOrigin): DeclaredExport[] {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    // The message of an error would quote the line, which can hold a secret.
    prettyErrors: false,
    customTags: secretTags(folder, environment),
  });
  const place = (offset: number): string => `${name}:${lines.linePos(offset).line}`;
  const broken = [...document.errors, ...document.warnings].map(
    // After a colon, the parser quotes what it could not read.
    ({ pos, message }) => `${place(pos[0])}: ${message.split(': ', 1)[0] ?? ''}`,
  );
  if (broken.length > 0) throw new CliError(broken.join('\n'));
  const problems: string[] = [];
  const report = (path: readonly (string | number)[], message: string): void => {
    problems.push(`${place(offsetOf(document, path))}: ${message}`);
  };
  rejectAliases(document, (offset) =>
    problems.push(`${place(offset)}: Write it out: aliases are not supported.`),
  );
  const exports = problems.length > 0 ? [] : exportsIn(document.toJS(), report);
  if (problems.length > 0) throw new CliError(problems.join('\n'));
  return exports;
}

/** Tags take whole values, so that no text needs to be escaped: a prefix may contain `{year}`, a query `$`. */
const secretTags = (folder: string, environment: TextOrigin['environment']): ScalarTag[] => [
  {
    tag: '!env',
    resolve: (variable, onError) => {
      const value = environment[variable] ?? '';
      if (value === '') onError(`The environment variable ${variable} is not set.`);
      return value;
    },
  },
  {
    tag: '!file',
    resolve: (file, onError) => {
      try {
        // Editors end a file with a line break, which is no part of a secret.
        return readFileSync(resolve(folder, file), 'utf8').replace(/\r?\n$/, '');
      } catch {
        onError(`The file ${file} cannot be read.`);
        return '';
      }
    },
  },
];

/** They could grow a short file without bounds, and errors could not name their line. */
function rejectAliases(document: Document, report: (offset: number) => void): void {
  visit(document, {
    Node: (_, node) => {
      if (isAlias(node)) report(node.range?.[0] ?? 0);
    },
  });
}

/** Where the closest node on a path begins. */
function offsetOf(document: Document, path: readonly (string | number)[]): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const node: unknown = length === 0 ? document.contents : document.getIn(path.slice(0, length), true);
    if (typeof node === 'object' && node !== null && 'range' in node && Array.isArray(node.range))
      return Number(node.range[0]);
  }
  return 0;
}

type Report = (path: readonly (string | number)[], message: string) => void;

const isRecord = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function exportsIn(root: unknown, report: Report): DeclaredExport[] {
  if (!isRecord(root) || !Array.isArray(root.exports)) {
    report([], 'Write `exports:` and a list of exports.');
    return [];
  }
  for (const field of Object.keys(root))
    if (field !== 'exports') report([field], `Unknown field ${field}. A file has the field exports only.`);
  const seen = new Set<string>();
  return root.exports.flatMap((one: unknown, index) => {
    const path = ['exports', index];
    if (!isRecord(one) || typeof one.name !== 'string' || one.name.trim() === '') {
      report(path, 'An export needs a name.');
      return [];
    }
    if (seen.has(one.name)) report([...path, 'name'], `Two exports have the name ${one.name}.`);
    seen.add(one.name);
    rejectUnknown(one, declarableFields, path, report);
    if (!isRecord(one.destination)) report([...path, 'destination'], `${one.name} needs a destination.`);
    else {
      rejectUnknown(one.destination, ['type', 'config'], [...path, 'destination'], report);
      if (one.destination.config !== undefined && !isRecord(one.destination.config))
        report([...path, 'destination', 'config'], 'A config has fields.');
    }
    return [{ name: one.name, fields: one }];
  });
}

/** Unknown fields of a config are left to the API, which knows the type of the destination. */
function rejectUnknown(
  value: JsonObject,
  known: readonly string[],
  path: readonly (string | number)[],
  report: Report,
): void {
  for (const field of Object.keys(value))
    if (!known.includes(field))
      report([...path, field], `Unknown field ${field}. Known fields: ${known.join(', ')}.`);
}
