import { z } from 'zod';
import { createBody, updateBody } from './batch_export.ts';

/** The body of a test of a destination that no export has yet; of a new export's members only some mean something. */
export const newDestinationTestBody = z
  .strictObject({ ...updateBody.shape, destination: createBody.shape.destination })
  .meta({ id: 'DestinationTestNew' });

/** The body of a test of an export's destination: what would be changed of it. */
export const destinationTestBody = z.strictObject(updateBody.shape).meta({ id: 'DestinationTestOf' });

/** What became of each step, in their order. */
export const destinationTestSchema = z
  .object({
    steps: z.array(
      z.object({
        name: z.string(),
        description: z.string(),
        result: z.object({
          status: z
            .enum(['Passed', 'Failed', 'Skipped'])
            .describe('A step is skipped when one that it needs has failed.'),
          message: z.string().nullable().describe('What is wrong, and what it means for exports.'),
        }),
      }),
    ),
  })
  .meta({ id: 'DestinationTest' });
