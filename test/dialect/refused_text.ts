/** A text that is refused, the carets below the line at fault, and what is said with them. */
export type RefusedText = readonly [text: string, carets: string, says: string];
