/**
 * Whether a text has line breaks, other control characters, or some that are not shown, such as those that reverse the direction of
 * what follows. Terminals obey them, and a person who copies a program with such a name sees another one than runs.
 */
export const hasControlCharacters = (text: string): boolean => /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(text);
