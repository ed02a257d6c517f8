import * as z from 'zod';
import { actionStepSchema } from '../../queries/actions.ts';
import { lineText, nameText, readOnly, responseTimestampSchema } from '../schemas.ts';

const maxNameLength = 400;
const maxDescriptionLength = 1_000;
const maxSteps = 20;
/** Every query of a project reads all of its actions. */
const maxStepsLength = 20_000;

const name = nameText(maxNameLength).describe(
  'Unique in the project: `matchesAction()` of the dialect takes it.',
);
const description = lineText(maxDescriptionLength);
const steps = z
  .array(actionStepSchema)
  .min(1, 'An action has at least one step.')
  .max(maxSteps, `An action has at most ${maxSteps} steps.`)
  .refine(
    (given) => JSON.stringify(given).length <= maxStepsLength,
    `The steps of an action have at most ${maxStepsLength} characters as JSON.`,
  )
  .transform((given) =>
    given.map(({ event, properties, url, url_matching }) => ({
      event: event === undefined || event === '' ? null : event,
      properties: properties ?? [],
      url: url === undefined || url === '' ? null : url,
      url_matching: url_matching ?? null,
    })),
  )
  .describe('An event matches the action if it matches one of them.');

/** An action in a response. */
export const actionSchema = z
  .object({
    id: z.number().int(),
    team_id: z.number().int(),
    name: z.string(),
    description: z.string(),
    steps: z.array(
      z.object({
        event: z.string().nullable(),
        properties: z.array(z.looseObject({})),
        url: z.string().nullable(),
        url_matching: z.string().nullable(),
      }),
    ),
    created_at: responseTimestampSchema,
    last_updated_at: responseTimestampSchema,
  })
  .meta({ id: 'Action' });
export type ActionResponse = z.infer<typeof actionSchema>;

const readOnlyFields = { id: readOnly, team_id: readOnly, created_at: readOnly, last_updated_at: readOnly };

export const createActionBody = z
  .strictObject({ name, description: description.nullish(), steps, ...readOnlyFields })
  .meta({ id: 'ActionCreate' });

export const updateActionBody = z
  .strictObject({
    name: name.optional(),
    description: description.nullish(),
    steps: steps.optional(),
    ...readOnlyFields,
  })
  .meta({ id: 'ActionUpdate' });
