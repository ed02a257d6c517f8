import { isDeepStrictEqual } from 'node:util';
import type { FieldChange } from '../../schemas/console/settings_history.ts';

/** The fields of an export by their paths, and its sealed secrets by theirs. */
export interface ExportFields {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, string>>;
}

/** No fields: what a new export is compared with. */
export const noFields: ExportFields = { fields: {}, secrets: {} };

/**
 * The fields in which two states of an export differ. A secret differs if its sealed value does: a kept secret is copied
 * without being sealed again.
 */
export function fieldChanges(before: ExportFields, after: ExportFields): FieldChange[] {
  const changed = (one: Readonly<Record<string, unknown>>, other: Readonly<Record<string, unknown>>) =>
    [...new Set([...Object.keys(other), ...Object.keys(one)])].filter(
      (field) => !isDeepStrictEqual(one[field] ?? null, other[field] ?? null),
    );
  return [
    ...changed(before.fields, after.fields).map((field) => ({
      field,
      before: before.fields[field] ?? null,
      after: after.fields[field] ?? null,
      secret: false,
    })),
    ...changed(before.secrets, after.secrets).map((field) => ({
      field,
      before: null,
      after: null,
      secret: true,
    })),
  ];
}
