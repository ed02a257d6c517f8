import { z } from 'zod';

/**
 * Parses with one of two schemas, chosen by a predicate. Unlike those of a union, the issues then name the field at
 * fault.
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
