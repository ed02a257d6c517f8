/** Where the table of an export is, and its keys that differ from those of other exports. */
import type { Model } from '../domain/batch_export.ts';
import { catalogTableOf } from './catalog_config.ts';
import type { FileIdentity, KeySpec } from './destination.ts';
import {
  constantPrefix,
  fileFolder,
  type FolderFields,
  keyLengthProblem,
  locationOf,
  rejectedKey,
} from './keys.ts';

/** The folder of the table that files with this prefix belong to: the segments that no time changes. '' is the bucket. */
export const tableRoot = (template: string, model: Model): string =>
  constantPrefix(template.replaceAll('{table}', model));

/** Identifies the table of a stored config: its folder, and its name in a catalog; null without a table. */
export function tableLocationOf(config: Readonly<Record<string, unknown>>, model: Model): string | null {
  const folder = tableFolderOf(config, model);
  const inCatalog = catalogTableOf(config);
  return folder === null || inCatalog === null ? folder : `${folder} ${inCatalog}`;
}

/** The folder of the table of a stored config: server, bucket and path; null without a table. */
export function tableFolderOf(config: Readonly<Record<string, unknown>>, model: Model): string | null {
  const { table_format, prefix } = config;
  if (typeof table_format !== 'string' || typeof prefix !== 'string') return null;
  return `${locationOf(config)}/${tableRoot(prefix, model)}`;
}

/** Returns why a valid prefix cannot be that of a table; null if it can. */
export function tablePrefixProblem(template: string): string | null {
  if (tableRoot(template, 'events') === '')
    return 'The first segment of the prefix of a table must have no time in it, such as events/{year}: the table is in that folder.';
  return null;
}

/** Returns why keys of files and of rejected rows may exceed S3's limit; null if they fit. */
export const folderLengthProblem = (fields: FolderFields & TableFields): string | null =>
  keyLengthProblem(
    hidesRejected(fields) ? `${fileFolder(fields).replace(/\/$/, '')}/${rejectedFolder}` : fileFolder(fields),
    fields.partition_by?.includes('event'),
  );

interface TableFields {
  readonly table_format: string | null;
}

/**
 * What reads or maintains a table takes every file in its folders for one of it, except below a name that begins with an
 * underscore.
 */
const rejectedFolder = '_rejected';
const hidesRejected = ({ table_format, partition_by = [] }: FolderFields & TableFields): boolean =>
  table_format !== null || partition_by.length > 0;

/** The key of the file with the rejected rows of a generation. */
export function rejectedKeyOf(
  fields: FolderFields & TableFields,
  spec: KeySpec,
  file: Pick<FileIdentity, 'generation' | 'mark'>,
): string {
  const key = rejectedKey(fileFolder(fields), spec, file);
  if (!hidesRejected(fields)) return key;
  const root = tableRoot(fields.prefix, spec.model);
  return root === '' ? `${rejectedFolder}/${key}` : `${root}/${rejectedFolder}${key.slice(root.length)}`;
}
