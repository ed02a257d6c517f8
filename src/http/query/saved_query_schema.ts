import * as z from 'zod';
import { listQuery, nameText, pathId, responseTimestampSchema } from '../schemas.ts';
import { queryField } from './schema.ts';

const savedName = nameText(200).describe('Unique in the project.');

/** A saved query in a response. */
export const savedQuerySchema = z
  .object({
    id: z.string().meta({ format: 'uuid' }),
    name: savedName,
    query: queryField.describe('What `POST …/query` takes as `query`.'),
    version: z.number().int().describe('Raised by each change.'),
    created_at: responseTimestampSchema,
    created_by: z.string().nullable().describe('E-mail address of the user.'),
    last_updated_at: responseTimestampSchema,
    last_updated_by: z.string().nullable().describe('E-mail address of the user.'),
  })
  .meta({ id: 'SavedQuery' });
export type SavedQueryResponse = z.infer<typeof savedQuerySchema>;

export const savedQueryListQuery = listQuery.extend({
  name: z.string().max(200).optional().describe('Only the query with this name.'),
});

export const createSavedQueryBody = z
  .strictObject({ name: savedName, query: queryField })
  .meta({ id: 'SavedQueryCreate' });

export const updateSavedQueryBody = z
  .strictObject({
    name: savedName.optional(),
    query: queryField.optional(),
    version: z
      .number()
      .int()
      .min(1)
      .max(2_147_483_647)
      .describe('The version that the change is based on. Another current version is a conflict.'),
  })
  .meta({ id: 'SavedQueryUpdate' });

export const savedQueryPath = z.object({ project_id: z.string(), id: pathId });
