/**
 * Which keys of a bucket exportd can have written for an interval of an export. Who may write below its prefix can put
 * a manifest there: what it names is read, adopted and deleted only if it is one of these.
 */
import { type Model, models } from '../domain/batch_export.ts';
import { fileExtension } from '../encoding/encode_block.ts';
import type { EncodingOptions } from '../encoding/encoder.ts';
import { fileKey, type FileIdentity, type KeySpec, rejectedKey } from './keys.ts';
import { fileFolder } from './prefix.ts';
import { locationOf } from './bucket_location.ts';
import type { Manifest } from './manifest.ts';

/** The fields of a stored config that decide about keys. */
type StoredConfig = Readonly<Record<string, unknown>>;
type KeyFields = Parameters<typeof rejectedKey>[0] & Pick<EncodingOptions, 'file_format' | 'compression'>;

const keyPattern =
  /^\d{8}T\d{6}Z-\d{8}T\d{6}Z(?:-(?:(?<range>\d{1,6})\.)?(?<file>\d{1,6}))?(?:-g(?<generation>\d{1,6}))?(?:-(?<mark>[0-9a-f]{8}))?(?:-rejected)?\.[a-z.]+$/;

/** What a key says of its file; undefined when it is none of exportd's. */
function identityIn(key: string): FileIdentity | undefined {
  const groups = keyPattern.exec(key.slice(key.lastIndexOf('/') + 1))?.groups;
  if (!groups) return undefined;
  const { range, file, generation = '1', mark = null } = groups;
  return {
    range: range === undefined ? null : Number(range),
    file: file === undefined ? null : Number(file),
    generation: Number(generation),
    mark,
  };
}

/** Whether a config leads to a key. The model of an export may change, and is a variable of prefixes. */
function leadsTo(key: string, identity: FileIdentity, fields: KeyFields, interval: KeySpec): boolean {
  const extension = fileExtension(fields);
  return models.some((model: Model) => {
    const spec = { ...interval, model };
    return (
      key === fileKey(fileFolder(fields), spec, identity, extension) ||
      key === rejectedKey(fields, spec, identity)
    );
  });
}

/**
 * Whether exportd can have written a key for an interval.
 * @param configs all stored versions of the export's config that lead to the bucket, without secrets
 */
export function isOwnKey(configs: readonly StoredConfig[], interval: KeySpec, key: string): boolean {
  const identity = identityIn(key);
  // Every stored config was validated and has these fields.
  return (
    identity !== undefined &&
    configs.some((config) => leadsTo(key, identity, config as unknown as KeyFields, interval))
  );
}

/** The versions that lead to the bucket of one of them. */
export const configsOfBucket = (
  versions: readonly { readonly config: StoredConfig }[],
  one: StoredConfig,
): readonly StoredConfig[] =>
  versions.map(({ config }) => config).filter((config) => locationOf(config) === locationOf(one));

/** The keys of all objects that a manifest names. */
const keysOf = ({ files, rejected_file, kept, earlier }: Manifest): readonly string[] =>
  [...files, ...kept, ...earlier, ...(rejected_file ? [rejected_file] : [])].map(({ key }) => key);

/** Returns why a manifest is not one that exportd wrote for an interval of an export, as a sentence; null if it may be. */
export function foreignBecause(
  manifest: Manifest,
  interval: KeySpec,
  configs: readonly StoredConfig[],
): string | null {
  if (manifest.batch_export_id !== interval.batch_export_id)
    return `The manifest belongs to batch export ${manifest.batch_export_id}.`;
  if (
    Date.parse(manifest.data_interval_start) !== Date.parse(interval.data_interval_start) ||
    Date.parse(manifest.data_interval_end) !== Date.parse(interval.data_interval_end)
  )
    return `The manifest is of ${manifest.data_interval_start} to ${manifest.data_interval_end}.`;
  const foreign = keysOf(manifest).find((key) => !isOwnKey(configs, interval, key));
  return foreign === undefined
    ? null
    : `The manifest names ${foreign}, which exportd cannot have written for this interval.`;
}
