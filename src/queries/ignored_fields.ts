import { z } from 'zod';

/** Members that every kind of query accepts, since clients send them, and that no answer depends on. */
export const ignoredFields = {
  response: z.unknown().optional(),
  name: z.string().nullish(),
  modifiers: z.looseObject({}).nullish(),
  tags: z.looseObject({}).nullish(),
  version: z.number().nullish(),
};

/** Their names, for cache forms. */
export const ignoredFieldNames: ReadonlySet<string> = new Set(Object.keys(ignoredFields));
