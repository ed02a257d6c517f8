/** The prefix of keys: a template whose variables depend on the interval and the model. */
import type { Model } from '../domain/batch_export.ts';
import { hasControlCharacters } from '../domain/control_characters.ts';
import { type PartitionColumn, partitionTemplates } from './partitions.ts';

/** The variables of a prefix. They depend on the run only, never on the clock. */
export const prefixVariables = [
  'year',
  'month',
  'day',
  'hour',
  'minute',
  'second',
  'data_interval_start',
  'data_interval_end',
  'table',
] as const;
export type PrefixVariable = (typeof prefixVariables)[number];

/** Whether a name is a variable. */
export const isVariable = (name: string): name is PrefixVariable =>
  (prefixVariables as readonly string[]).includes(name);

/**
 * Folders below a prefix, which has none of them itself. Readers take every file in a folder for one with its rows, except below a
 * name that begins with an underscore: Spark and pyarrow open no folder of Parquet with another file in it, and one of JSON lines
 * would count the rejected rows.
 */
export const reservedFolders = {
  manifests: '_manifests',
  rejectedRows: '_rejected',
  tests: '_exportd_test',
  probes: '_exportd_probe',
  tableLog: '_delta_log',
};

/** Returns why a template is not a valid prefix; null if it is. */
export function prefixProblem(template: string): string | null {
  if (template.startsWith('/')) return `The prefix must not start with "/".`;
  if (hasControlCharacters(template) || template.includes('\\'))
    return 'The prefix must not contain control characters, line breaks or backslashes.';
  const segments = template.replace(/\/$/, '').split('/');
  const reserved = segments.find((segment) => Object.values(reservedFolders).includes(segment));
  if (reserved !== undefined)
    return `The prefix must not contain the path segment "${reserved}": exportd and readers give it a meaning of its own.`;
  if (segments.some((segment) => segment === '..' || segment === '.'))
    return 'The prefix must not contain the path segments "." and "..".';
  if (segments.length > 1 && segments.includes('')) return 'The prefix must not contain "//".';
  for (const [, name] of template.matchAll(/\{([^{}]*)\}/g))
    if (!isVariable(name ?? ''))
      return `The prefix contains the unknown variable {${name}}. Available variables: ${prefixVariables.map((known) => `{${known}}`).join(', ')}.`;
  if (/[{}]/.test(template.replaceAll(/\{[^{}]*\}/g, '')))
    return 'The prefix contains an unbalanced brace. Write variables like {year}.';
  return null;
}

/** Renders a validated template without a trailing slash; '' for no prefix. */
export const renderPrefix = (template: string, values: Readonly<Record<PrefixVariable, string>>): string =>
  template
    .replaceAll(/\{([^{}]*)\}/g, (text, name: string) => (isVariable(name) ? values[name] : text))
    .replace(/\/$/, '');

/** The fields of a config that decide about the folders of files. Stored configs of former versions have no partitions. */
export interface FolderFields {
  readonly prefix: string;
  readonly partition_by?: readonly PartitionColumn[];
}

/** The template of the folders of files: the prefix, and a folder for each partition, as Hive names them. */
export const fileFolder = ({ prefix, partition_by = [] }: FolderFields): string =>
  joinSegments(
    prefix.replace(/\/$/, ''),
    ...partition_by.map((column) => `${column}=${partitionTemplates[column]}`),
  );

/** Returns why a valid prefix cannot be followed by partitions; null if it can. */
export function partitionProblem({ prefix, partition_by = [] }: FolderFields): string | null {
  if (partition_by.length === 0) return null;
  if (prefix.replaceAll('{table}', '').includes('{'))
    return 'With partition_by the prefix must have no time in it, such as events or {table}: the folders of the partitions have it.';
  const taken = partition_by.find((column) =>
    prefix.split('/').some((part) => part.startsWith(`${column}=`)),
  );
  return taken === undefined
    ? null
    : `The prefix has the partition ${taken} already, which partition_by adds to it. Remove it from the prefix.`;
}

/** The path segments before the first variable, which are the same for all intervals. */
export function constantPrefix(template: string): string {
  const segments = template.replace(/\/$/, '').split('/');
  const firstVariable = segments.findIndex((segment) => segment.includes('{'));
  return (firstVariable === -1 ? segments : segments.slice(0, firstVariable)).join('/');
}

/** The folder of the table that files with this prefix belong to: the segments that no time changes. '' is the bucket. */
export const tableRoot = (template: string, model: Model): string =>
  constantPrefix(template.replaceAll('{table}', model));

/** Joins the parts of a key, without those that are empty. */
export const joinSegments = (...segments: readonly string[]): string =>
  segments.filter((segment) => segment !== '').join('/');
