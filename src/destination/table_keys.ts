/** Where the table of an export is, and its keys that differ from those of other exports. */
import type { Model } from '../domain/batch_export.ts';
import type { FileIdentity, KeySpec } from './destination.ts';
import { constantPrefix, keyLengthProblem, locationOf, rejectedKey } from './keys.ts';

/** The folder of the table that files with this prefix belong to: the segments that no time changes. '' is the bucket. */
export const tableRoot = (template: string, model: Model): string =>
  constantPrefix(template.replaceAll('{table}', model));

/** Identifies the table of a stored config: server, bucket and folder; null without a table. */
export function tableLocationOf(config: Readonly<Record<string, unknown>>, model: Model): string | null {
  const { table_format, prefix } = config;
  if (typeof table_format !== 'string' || typeof prefix !== 'string') return null;
  return `${locationOf(config)}/${tableRoot(prefix, model)}`;
}

/** Returns why a valid prefix cannot be that of a table; null if it can. */
export function tablePrefixProblem(template: string): string | null {
  if (tableRoot(template, 'events') === '')
    return 'The first segment of the prefix of a table must have no time in it, such as events/{year}: the table is in that folder.';
  return keyLengthProblem(`${template.replace(/\/$/, '')}/${rejectedFolder}`);
}

/** What maintains tables deletes unknown files in their folders, except below a name that begins with an underscore. */
const rejectedFolder = '_rejected';

/** The key of the file with the rejected rows of a generation. */
export function tableRejectedKey(
  prefix: string,
  spec: KeySpec,
  file: Pick<FileIdentity, 'generation' | 'mark'>,
): string {
  const root = tableRoot(prefix, spec.model);
  return `${root}/${rejectedFolder}${rejectedKey(prefix, spec, file).slice(root.length)}`;
}
