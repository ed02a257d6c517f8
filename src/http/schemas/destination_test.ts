import { z } from 'zod';
import { createBody, updateBody } from './batch_export.ts';

/** The body that tests the destination of a new export: a creation body, of which destination and model have an effect. */
export const newDestinationTestBody = z
  .strictObject({ ...updateBody.shape, destination: createBody.shape.destination })
  .meta({ id: 'DestinationTestNew' });

/** The body that tests the destination of an existing export: an update body. */
export const destinationTestBody = z.strictObject(updateBody.shape).meta({ id: 'DestinationTestOf' });

/** The result of each step, in order. */
export const destinationTestSchema = z
  .object({
    steps: z.array(
      z.object({
        name: z.string(),
        description: z.string(),
        result: z.object({
          status: z
            .enum(['Passed', 'Failed', 'Skipped'])
            .describe('A step is skipped when a step that it depends on failed.'),
          message: z.string().nullable().describe('What is wrong and how it affects exports.'),
          details: z
            .string()
            .optional()
            .describe('How the store behaves, where the step found out something.'),
        }),
      }),
    ),
  })
  .meta({ id: 'DestinationTest' });
