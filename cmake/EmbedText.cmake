# Writes the text of INPUT to OUTPUT as a C++ string literal.
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "R\"image(${text})image\"\n")
