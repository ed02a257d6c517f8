import { z } from 'zod';

/** A user, embedded in a resource that the user created. */
export const userSchema = z
  .object({
    id: z.number().int(),
    uuid: z.string().meta({ format: 'uuid' }),
    distinct_id: z.string(),
    first_name: z.string(),
    last_name: z.string(),
    email: z.string().meta({ format: 'email' }),
    is_email_verified: z.boolean(),
    mascot_config: z.record(z.string(), z.unknown()),
    role_at_organization: z.string(),
  })
  .meta({ id: 'User' });
