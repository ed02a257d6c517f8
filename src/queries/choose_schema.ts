import { z } from 'zod';

/**
 * One of two schemas, told apart by a look at the value: what is wrong then names the member at fault, as that of a
 * union would not.
 */
export const chooseSchema = <First, Second>(
  isFirst: (value: unknown) => boolean,
  first: z.ZodType<First>,
  second: z.ZodType<Second>,
): z.ZodType<First | Second> =>
  z.unknown().transform((value, context) => {
    const parsed = isFirst(value) ? first.safeParse(value) : second.safeParse(value);
    if (parsed.success) return parsed.data;
    for (const issue of parsed.error.issues) context.addIssue({ ...issue });
    return z.NEVER;
  });
