# The text of INPUT as a string literal of C++, in OUTPUT.
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "R\"image(${text})image\"\n")
