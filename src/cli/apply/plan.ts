import { readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import {
  Document,
  isAlias,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type ScalarTag,
  visit,
} from 'yaml';
import type { BatchExport, BatchExportCheck } from '../../client/client.ts';
import { bounds, boundText } from '../../config/bounds.ts';
import { secretFields } from '../../destination/config.ts';
import { defaultDefinition } from '../../http/batch_exports/changes.ts';
import { CliError } from '../cli_error.ts';
import { asWritten, type JsonObject, type ServiceClient } from '../service_client.ts';

/** An export as a file declares it. */
interface DeclaredExport {
  readonly name: string;
  /** Its fields as in the API, with secrets in plain text: never print them. */
  readonly fields: JsonObject;
}

/** The fields that a file can declare. */
const declarableFields = ['name', ...Object.keys(defaultDefinition), 'paused', 'destination'];

/**
 * Reads exports from a YAML file: `exports: [{name, model, …, destination: {type, config}}]`. `!env NAME` is the value of an
 * environment variable, `!file PATH` the text of a file below the folder of this one; both are for secrets only. `-` reads
 * stdin.
 * @throws CliError with every problem and its line
 */
export function readExportsFile(
  path: string,
  origin: Pick<TextOrigin, 'environment' | 'allowedVariables'>,
): DeclaredExport[] {
  const text = readText(path);
  return parseExports(text, {
    name: path,
    folder: path === '-' ? process.cwd() : dirname(path),
    ...origin,
  });
}

function readText(path: string): string {
  try {
    rejectLarge(path === '-' ? 0 : statSync(path).size);
    const text = readFileSync(path === '-' ? 0 : path, 'utf8');
    rejectLarge(text.length);
    return text;
  } catch (error) {
    if (error instanceof CliError) throw error;
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw new CliError(`${path} cannot be read (${code}).`);
  }
}

/** The parser holds many times the size of the text. @throws CliError */
function rejectLarge(size: number): void {
  if (size > bounds.exportsFile.max)
    throw new CliError(`A file of exports has at most ${boundText(bounds.exportsFile)}. Divide it.`);
}

/** Where a text comes from, and what its tags refer to. */
interface TextOrigin {
  readonly name: string;
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The variables that it may name; undefined for all. */
  readonly allowedVariables?: readonly string[] | undefined;
}

/** Parses the text of a file. @throws CliError with every problem and its line */
export function parseExports(text: string, origin: TextOrigin): DeclaredExport[] {
  const { name } = origin;
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    // The message of an error would quote the line, which can hold a secret.
    prettyErrors: false,
    customTags: secretTags,
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
  resolveTags(document, origin, (offset, message) => problems.push(`${place(offset)}: ${message}`));
  const exports = problems.length > 0 ? [] : exportsIn(document.toJS(), report);
  if (problems.length > 0) throw new CliError(problems.join('\n'));
  return exports;
}

/** Tags take whole values, so that no text needs to be escaped: a prefix may contain `{year}`, a query `$`. */
const secretTags: ScalarTag[] = ['!env', '!file'].map((tag) => ({ tag, resolve: (argument) => argument }));

/** Replaces the tags of secrets by what they stand for. Anywhere else their values would be printed and stored in plain text. */
function resolveTags(
  document: Document,
  origin: TextOrigin,
  report: (offset: number, message: string) => void,
): void {
  visit(document, {
    Scalar: (key, node, ancestors) => {
      const { tag, value } = node;
      if ((tag !== '!env' && tag !== '!file') || typeof value !== 'string') return;
      const offset = node.range?.[0] ?? 0;
      try {
        if (key === 'key' || !isSecretField(fieldsTo(ancestors)))
          throw new CliError(`${tag} is for secrets only: ${secretFields.join(', ')}.`);
        node.value = tag === '!env' ? readVariable(value, origin) : readSecretFile(value, origin.folder);
      } catch (error) {
        if (!(error instanceof CliError)) throw error;
        report(offset, error.message);
      }
    },
  });
}

/** The names of the fields on the way to a value; null for an item of a list. */
const fieldsTo = (ancestors: readonly unknown[]): unknown[] =>
  ancestors.flatMap((ancestor): unknown[] => {
    if (isPair(ancestor)) return [isScalar(ancestor.key) ? ancestor.key.value : undefined];
    return isSeq(ancestor) ? [null] : [];
  });

/** Whether a path is `exports`, an item, `destination`, `config` and a secret field. */
function isSecretField([root, item, destination, config, field, ...deeper]: readonly unknown[]): boolean {
  return (
    root === 'exports' &&
    item === null &&
    destination === 'destination' &&
    config === 'config' &&
    secretFields.includes(String(field)) &&
    deeper.length === 0
  );
}

/** @throws CliError when it is not set, or not among the allowed ones */
function readVariable(name: string, { environment, allowedVariables }: TextOrigin): string {
  if (allowedVariables && !allowedVariables.includes(name))
    throw new CliError(`The environment variable ${name} is not allowed: add --env ${name}.`);
  const value = environment[name] ?? '';
  if (value === '') throw new CliError(`The environment variable ${name} is not set.`);
  return value;
}

/**
 * Reads the text of a file below the folder, also if links lead to it.
 * @throws CliError that shows nothing of it
 */
function readSecretFile(name: string, folder: string): string {
  let path: string;
  try {
    path = realpathSync(resolve(folder, name));
  } catch {
    // Whether a file exists elsewhere is none of this file's business.
    if (isOutside(resolve(folder, name), resolve(folder))) throw outside(name);
    throw new CliError(`The file ${name} cannot be read.`);
  }
  if (isOutside(path, realpathSync(folder))) throw outside(name);
  try {
    const found = statSync(path);
    if (!found.isFile()) throw new CliError(`${name} is no file.`);
    if (found.size > bounds.secretFile.max)
      throw new CliError(
        `The file ${name} has more than ${boundText(bounds.secretFile)}, which is no secret.`,
      );
    // Editors end a file with a line break, which is no part of a secret.
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(`The file ${name} cannot be read.`);
  }
}

function isOutside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way);
}

const outside = (name: string): CliError =>
  new CliError(`The file ${name} is not below the folder of the file that declares the exports.`);

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

/** A field that an export gets. The values of secrets are null. */
interface PlannedField {
  /** Its path, such as `destination.config.prefix`. */
  readonly field: string;
  readonly secret: boolean;
  /** Null for a new export. */
  readonly from: unknown;
  /** Null for the default. */
  readonly to: unknown;
}

/** What becomes of an export. `undeclared`: it is not in the file, and stays. */
export interface PlannedExport {
  readonly action: 'create' | 'update' | 'unchanged' | 'delete' | 'undeclared';
  readonly name: string;
  /** Null before it exists. */
  readonly id: string | null;
  readonly fields: readonly PlannedField[];
  /** What it does to intervals and files that exist, a sentence each. */
  readonly consequences: readonly string[];
}

/** An export of the plan, and the body of the request that carries it out: it can contain secrets. */
export interface PlannedRequest {
  readonly planned: PlannedExport;
  readonly body?: JsonObject;
}

/**
 * Compares the declared exports with those of the project, by name. The API validates each and says what it would change.
 * @throws CliError with every export that the API rejects
 */
export async function makePlan(
  service: ServiceClient,
  declared: readonly DeclaredExport[],
  { prune }: { readonly prune: boolean },
): Promise<PlannedRequest[]> {
  const existing = await service.exports();
  const problems: string[] = [];
  const requests: PlannedRequest[] = [];
  for (const one of declared) {
    const [current, ...others] = existing.filter(({ name }) => name === one.name);
    if (others.length > 0)
      problems.push(`${one.name}: ${others.length + 1} exports have this name. Rename them.`);
    try {
      requests.push(current ? await planUpdate(service, one, current) : await planCreation(service, one));
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      problems.push(`${one.name}: ${error.message}`);
    }
  }
  if (problems.length > 0) throw new CliError(problems.join('\n'));
  const names = new Set(declared.map(({ name }) => name));
  const undeclared = existing.filter(({ name }) => !names.has(name));
  return [...requests, ...undeclared.map((one) => planUndeclared(one, prune))];
}

async function planCreation(
  service: ServiceClient,
  { name, fields }: DeclaredExport,
): Promise<PlannedRequest> {
  const body = withoutNulls(fields);
  const checked = await service.post('/batch_exports/check', { body: asWritten(body) });
  const changes = plannedFields(checked, {}, body);
  return { planned: { action: 'create', name, id: null, fields: changes, consequences: [] }, body };
}

async function planUpdate(
  service: ServiceClient,
  { name, fields }: DeclaredExport,
  current: BatchExport,
): Promise<PlannedRequest> {
  const { id } = current;
  const body = updateBodyOf(fields, current);
  const checked = await service.post('/batch_exports/{id}/check', { path: { id }, body: asWritten(body) });
  const changes = plannedFields(checked, current, body);
  const action = changes.length === 0 ? 'unchanged' : 'update';
  return { planned: { action, name, id, fields: changes, consequences: checked.consequences }, body };
}

const planUndeclared = (current: BatchExport, prune: boolean): PlannedRequest => ({
  planned: {
    action: prune ? 'delete' : 'undeclared',
    name: current.name,
    id: current.id,
    fields: [],
    consequences: [],
  },
});

/**
 * The body that gives an export the declared fields and all others their defaults. Two are left as they are: whether the
 * export is paused, which people change meanwhile, and secrets, which may be kept elsewhere.
 */
export function updateBodyOf(fields: JsonObject, current: Pick<BatchExport, 'destination'>): JsonObject {
  const { interval, ...resettable } = defaultDefinition;
  const omitted = Object.keys(resettable).map((field) => [field, null] as const);
  const { type, config } = fields.destination as { type?: unknown; config?: JsonObject };
  const omittedConfig = Object.keys(current.destination.config).map((field) => [field, null] as const);
  return {
    ...Object.fromEntries(omitted),
    interval,
    ...fields,
    destination: { type, config: { ...Object.fromEntries(omittedConfig), ...config } },
  };
}

/** Fields without those that are null: creation has no field to reset. */
export const withoutNulls = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));

function plannedFields(
  { changes, secrets }: BatchExportCheck,
  current: object,
  body: JsonObject,
): PlannedField[] {
  return changes.map((name) => {
    const path = name.split('__');
    const secret = secrets.includes(name);
    return {
      field: path.join('.'),
      secret,
      from: secret ? null : valueAt(current, path),
      to: secret ? null : valueAt(body, path),
    };
  });
}

const valueAt = (value: unknown, path: readonly string[]): unknown =>
  path.reduce((inner: unknown, field) => (inner as JsonObject | null | undefined)?.[field], value) ?? null;

const titles: Readonly<Record<PlannedExport['action'], (name: string) => string>> = {
  create: (name) => `+ create ${name}`,
  update: (name) => `~ update ${name}`,
  unchanged: (name) => `  unchanged: ${name}`,
  delete: (name) => `- delete ${name}; its objects stay in the bucket`,
  undeclared: (name) => `  not in the file: ${name}; --prune deletes it`,
};

/** Formats a plan as a diff, with a summary as its last line. */
export function planLines(plan: readonly PlannedExport[]): string[] {
  const lines = plan.flatMap(({ action, name, fields, consequences }) => [
    titles[action](name),
    ...fields.map((field) => `    ${fieldLine(action, field)}`),
    ...consequences.map((sentence) => `    note: ${sentence}`),
  ]);
  return [...lines, summaryOf(plan)];
}

function fieldLine(action: PlannedExport['action'], { field, secret, from, to }: PlannedField): string {
  if (secret) return `${field}: ${action === 'create' ? 'set' : 'changed'} (secret)`;
  const target = to === null ? 'default' : JSON.stringify(to);
  return action === 'create' ? `${field}: ${target}` : `${field}: ${JSON.stringify(from)} → ${target}`;
}

function summaryOf(plan: readonly PlannedExport[]): string {
  const count = (action: PlannedExport['action']) => plan.filter((one) => one.action === action).length;
  return `${count('create')} to create, ${count('update')} to update, ${count('delete')} to delete, ${count('unchanged')} unchanged.`;
}

/** The longest line before a text is folded; a query keeps its lines. */
const lineWidth = 0;

/** The fields of an export that `exportd apply` reads, without those that have their default. */
export function toDeclaration(one: BatchExport): JsonObject {
  const defaults: Readonly<Record<string, unknown>> = defaultDefinition;
  const fields: Readonly<Record<string, unknown>> = { ...one };
  const definition = Object.keys(defaults)
    .map((field) => [field, fields[field]] as const)
    // An interval of an hour or less has no offsets.
    .filter(([field, value]) => value !== undefined && value !== null && value !== defaults[field]);
  const { type, config } = one.destination;
  return {
    name: one.name,
    model: one.model,
    interval: one.interval,
    ...Object.fromEntries(definition),
    ...(one.paused && { paused: true }),
    destination: { type, config: withoutNulls(config) },
  };
}

/** Writes exports as a file that `exportd apply` reads. */
export function exportsDocument(exports: readonly BatchExport[]): string {
  const document = new Document({ exports: exports.map(toDeclaration) });
  document.commentBefore = [
    ' Secrets are not shown. An update without them keeps those that are stored; a new export needs them, for example:',
    '   aws_access_key_id: !env AWS_ACCESS_KEY_ID',
    '   aws_secret_access_key: !file /run/secrets/aws_secret_access_key',
  ].join('\n');
  return document.toString({ lineWidth });
}
