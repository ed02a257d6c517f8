import { z } from 'zod';

/** What to do with rows that are in the bucket and no longer in the source: keep them, or follow the source. */
const missingRowsPolicies = ['keep', 'follow'] as const;

const message = `This on_missing_rows is not supported. Supported values are 'keep' and 'follow'.`;

/** The config field that decides about missing rows, for the schema of any destination. */
export const missingRowsField = {
  on_missing_rows: z.enum(missingRowsPolicies, message).default('keep').meta({
    description:
      'Rows that were exported and are no longer in the source, when their interval is exported again: keep them in the bucket, or follow the source and remove them.',
  }),
};

const schema = z.object(missingRowsField);

/** Whether a stored config follows the source: rows that are missing there leave the bucket. */
export const followsSource = (config: Readonly<Record<string, unknown>>): boolean =>
  schema.parse(config).on_missing_rows === 'follow';
